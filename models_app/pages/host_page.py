"""A host as its pages show it: devices with a bar, folders, the budget in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from gpus_app.core.budget import Budget
from gpus_app.core.gpu_set import NORMAL, PREFERENCE_OF_RANK, GpuSet
from gpus_app.core.units import GIB
from gpus_app.models import Device, Host
from gpus_app.selectors import host_budget, idle_devices, measured_devices, ram_limit_gib, target_vram_gib
from models_app.models import Root
from models_app.pages.device_list import SEPARATOR, MachineDevice
from models_app.pages.plan_panel import Machine
from models_app.pages.shell import ConfigState, DriftState, WorkerState, config_state, drift_state, worker_state
from quartermaster_site.drawings import MemoryBar, Part, Track, memory_bar
from quartermaster_site.figures import UNKNOWN, age, ago, gib
from quartermaster_site.jobs.connection import broker_problem

SHOWN_AFTER = timedelta(seconds=60)
STALE_AFTER = timedelta(minutes=5)
"""Figures show their age, and are greyed, from so old on."""
ROOT_LOOKS = {
    Root.State.NEW: ("", "not scanned yet", "idle"),
    Root.State.OK: ("ok", "ok", "ok"),
    Root.State.MISSING: ("bad", "missing", "off"),
    Root.State.UNREADABLE: ("bad", "unreadable", "bad"),
    Root.State.PARTIAL: ("warn", "partly read", "part"),
}


@dataclass(frozen=True, slots=True)
class DeviceRow:
    name: str
    integrated: bool
    total: str
    used: str
    free: str
    budget: str
    eligible: bool
    reason: str
    use: str
    """What planning does with one that counts."""


@dataclass(frozen=True, slots=True)
class RootRow:
    pk: int
    path: str
    category: str
    files: str
    scanned: datetime | None
    tone: str
    word: str
    shape: str
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetText:
    vram: str
    ram: str


def machine_of(budget: Budget, ram_total_bytes: int) -> Machine:
    """What the bar of a plan needs, in the order in which a launch lists the devices."""
    devices = []
    for index, share in enumerate(budget.device_bytes):
        name = budget.device_names[index] if index < len(budget.device_names) else "budget set by hand"
        capacity = budget.capacity_bytes[index] if index < len(budget.capacity_bytes) else share
        own_id = budget.backend_ids[index] if index < len(budget.backend_ids) else ""
        reserved = budget.reserved_bytes[index] if index < len(budget.reserved_bytes) else 0
        preference = PREFERENCE_OF_RANK[budget.ranks[index]] if budget.ranks else NORMAL
        number = budget.numbers[index] if index < len(budget.numbers) else index
        devices.append(MachineDevice(f"GPU {number}{SEPARATOR}{name}", capacity, share, own_id, reserved, preference))
    return Machine(tuple(devices), ram_total_bytes or budget.ram_bytes, budget.ram_bytes)


def device_rows(host: Host) -> list[DeviceRow]:
    shares, uses, measured = _budget_by_index(host), _uses(idle_devices(host)), measured_devices(host)
    return [
        DeviceRow(
            name=_device_name(device),
            integrated=device.integrated,
            total=gib(measured[device.index].total_bytes),
            used=gib(measured[device.index].used_bytes),
            free=gib(measured[device.index].free_bytes),
            budget=gib(shares[device.index]) if device.index in shares else UNKNOWN,
            eligible=device.eligible,
            reason=f"not used: {device.eligible_reason or 'not eligible'}",
            use=uses.get(device.index, ""),
        )
        for device in host.devices.all()
    ]


def _uses(devices: GpuSet) -> dict[int, str]:
    """Index of a device that counts -> what planning does with it, and why it is the main one."""
    words = {}
    mixed = len({device.rank for device in devices.devices}) > 1
    for position, device in enumerate(devices.devices):
        preference = PREFERENCE_OF_RANK[device.rank]
        text = f"used {preference}, as set" if preference else "used for planning"
        if len(devices) > 1 and position == devices.plan_main:
            text += "; the main device, by the order that is set" if mixed else "; the main device, with most memory"
        words[device.index] = text
    return words


def device_bar(host: Host) -> MemoryBar | None:
    """What is in use on each device now, by us and by others where that is known, with the budget as a line."""
    shares, measured, now = _budget_by_index(host), measured_devices(host), timezone.now()
    tracks = []
    for device in host.devices.all():
        memory = measured[device.index]
        used = memory.used_bytes
        note = f"{_use_in_words(device, used)}, {gib(memory.free_bytes)} free{_old(device, now)}"
        ours = min(device.ours_bytes or 0, used)
        others = "in use now" if device.ours_bytes is None else "other use"
        parts = (Part("used", "loaded models", "loaded", ours), Part("other", others, others, used - ours))
        tracks.append(Track(_device_name(device), note, parts, memory.total_bytes, shares.get(device.index)))
    words = " ".join(f"{track.name}: {track.note}." for track in tracks)
    return memory_bar(tracks, f"Memory in use on {host.name}. {words}")


def _use_in_words(device: Device, used: int) -> str:
    if device.ours_bytes is None:
        return f"{gib(used)} used"
    ours = min(device.ours_bytes, used)
    return f"{gib(ours)} loaded, {gib(used - ours)} other"


def _old(device: Device, now: datetime) -> str:
    """How old the figures of a device are, where that is worth a word (web.md 5.3)."""
    passed = now - device.read_at
    if passed <= SHOWN_AFTER:
        return ""
    return f", {age(passed.total_seconds())} ago{', stale' if passed > STALE_AFTER else ''}"


def is_stale(host: Host) -> bool:
    """Whether what is shown of its devices may be another by now."""
    measured = measured_at(host)
    return measured is not None and timezone.now() - measured > STALE_AFTER


def measured_at(host: Host) -> datetime | None:
    """When its devices were read last, by a probe or a sample; without devices, when it was probed."""
    return max((device.read_at for device in host.devices.all()), default=host.probed_at)


def _budget_by_index(host: Host) -> dict[int, int]:
    devices = idle_devices(host).devices
    if not devices:
        return {}
    return {device.index: share for device, share in zip(devices, host_budget(host).device_bytes, strict=False)}


def _device_name(device: Device) -> str:
    return f"GPU {device.index}{SEPARATOR}{device.name}"


def root_rows(roots: Iterable[Root], *, counted: bool = True) -> list[RootRow]:
    """Without `counted` no number of files is told: it would count what is hidden from a person."""

    def row(root: Root) -> RootRow:
        files = f"{root.file_count:,}" if counted else UNKNOWN
        return RootRow(root.pk, root.path, root.category or "main", files, root.last_scan_at, *_look(root))

    return [row(root) for root in roots]


def _look(root: Root) -> tuple[str, str, str, str]:
    tone, word, shape = ROOT_LOOKS[Root.State(root.state)]
    return tone, word, shape, root.state_reason


def budget_text(host: Host) -> BudgetText:
    """`22.00 GiB` or `none: plans run on the CPU`."""
    target = target_vram_gib(host)
    vram = f"{gib(target * GIB)} GiB" if target else "none: plans run on the CPU"
    return BudgetText(vram, f"{gib(ram_limit_gib(host) * GIB)} GiB")


def held_back(host: Host) -> str:
    """Why a job for this host would not run now, "" when it would (J-10)."""
    problem = broker_problem()
    if problem:
        return problem
    words = {
        "never": _never_heard(host),
        "offline": "the worker is offline; a new job waits for it",
        "mismatch": "the agent there is of another version",
    }
    return "the host is paused: a new job waits" if host.paused else words.get(host.state, "")


def _never_heard(host: Host) -> str:
    if heard := host.cut_off_heard_at:
        return f"its machine was cut off; it was last heard {ago(heard, timezone.now())}"
    return "no worker has answered yet"


def _none_seen(host: Host) -> str:
    """What is said of its GPUs where none is known."""
    return "none seen" if host.probed_at else "not measured yet"


@dataclass(frozen=True, slots=True)
class HostLine:
    """One line of the list of hosts."""

    slug: str
    name: str
    worker: WorkerState
    version: str
    devices: str
    budget: str
    models: str
    folders: int
    dialect: str
    config: ConfigState | None
    drift: DriftState | None


def host_lines(hosts: Iterable[Host], folders: Mapping[int, int]) -> list[HostLine]:
    """`hosts` as the shell has them, with the facts of the frame."""
    return [
        HostLine(
            slug=host.slug,
            name=host.name,
            worker=worker_state(host),
            version=host.worker_version,
            devices=", ".join(device.name for device in host.devices.all()) or _none_seen(host),
            budget=budget_text(host).vram if target_vram_gib(host) else "CPU only" if host.probed_at else UNKNOWN,
            models=f"{getattr(host, 'model_count', 0):,}",
            folders=folders.get(host.pk, 0),
            dialect=host.get_publish_dialect_display(),
            config=config_state(host),
            drift=drift_state(host),
        )
        for host in hosts
    ]
