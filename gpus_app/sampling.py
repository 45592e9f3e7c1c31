"""One sample of this machine at a time, for all who watch: devices, who uses them, RAM, disks. No database, no Django.

The control side orders sampling for some minutes and renews the order; a worker that nobody hears falls silent, so that
no queue fills up with figures of yesterday.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from celery.signals import worker_ready, worker_shutting_down

from gpus_app.core.gpu_set import is_integrated
from gpus_app.core.probes import drm_clients, nvidia, owners
from gpus_app.core.probes.disks import Disks
from gpus_app.core.probes.machine import read_machine
from gpus_app.core.readings import DeviceReading, MachineReading, MemoryReading
from gpus_app.core.use import DeviceUse, busy_percent, device_use
from quartermaster_site import env
from quartermaster_site.celery import app
from quartermaster_site.jobs.dispatch import CONTROL_QUEUE, send

TASK = "gpus_app.tasks.host_sampled"
ORDER_TASK = "gpus_app.sampling.keep_sampling"
EVERY_SECONDS = 5.0
MOST_PATHS = 32
NO_ROUTER = "no router on this machine is set, so nobody can tell whose memory it is"
_DISK_WAIT_SECONDS = 1.0
_FIND_ROUTER_EVERY_SECONDS = 15.0
OF_ANOTHER_USER = "the router runs as another user, whose use of the device cannot be read"
_PAUSE_SHARE = 9
"""Sampling takes a tenth of the time at most: a slow driver, or a tool that stands in for it, is asked less often."""

log = logging.getLogger(__name__)
_over = threading.Event()


@dataclass(frozen=True, slots=True)
class Order:
    """What to sample, until when by `time.monotonic`."""

    until: float = 0.0
    paths: tuple[str, ...] = ()
    router_url: str = ""


class Sampler:
    """The samples of one run of a worker, numbered, so that one that comes twice or late is seen to."""

    def __init__(self) -> None:
        self.order = Order()
        self._run = secrets.token_hex(8)
        self._number = 0
        self._disks = Disks()
        self._router: int | None = None
        self._looked_at = float("-inf")
        self._idle: dict[int, tuple[float, int]] = {}
        """Index of a device -> when, and how long it had slept then."""

    def is_wanted(self) -> bool:
        return time.monotonic() < self.order.until

    def take(self) -> dict[str, Any]:
        """The machine as it is now, as JSON."""
        started = time.monotonic()
        machine = self._with_use(read_machine())
        ours, note = self._our_processes(machine)
        self._number += 1
        return {
            "run": self._run,
            "number": self._number,
            "cpu_percent": _cpu_percent(),
            "ram": _ram(machine.memory) if machine.memory else None,
            "devices": _devices(machine, ours, note),
            "disks": [asdict(disk) for disk in self._disks.read(self.order.paths, _DISK_WAIT_SECONDS)],
            "notes": list(machine.notes),
            "failed": list(machine.failed),
            "took_seconds": round(time.monotonic() - started, 3),
        }

    def _with_use(self, machine: MachineReading) -> MachineReading:
        """With how much devices were used since the last sample, where a driver only counts how long they slept."""
        now, before = time.monotonic(), self._idle
        slept = {item.index: item.idle_milliseconds for item in machine.devices}
        self._idle = {index: (now, total) for index, total in slept.items() if total is not None}
        devices = []
        for item in machine.devices:
            if item.index in before and item.index in self._idle:
                at, total = before[item.index]
                item = replace(item, utilisation_percent=busy_percent(self._idle[item.index][1] - total, now - at))
            devices.append(item)
        return replace(machine, devices=tuple(devices))

    def _our_processes(self, machine: MachineReading) -> tuple[frozenset[int], str]:
        """Our processes, or why they are not known. Nobody looks for them where there is no device."""
        if not machine.devices:
            return frozenset(), ""
        port = owners.local_port(self.order.router_url)
        if port is None:
            return frozenset(), NO_ROUTER
        if time.monotonic() - self._looked_at > _FIND_ROUTER_EVERY_SECONDS:
            self._router, self._looked_at = owners.listener(port), time.monotonic()
        family = owners.families([os.getpid(), *([self._router] if self._router else [])])
        if self._router is None or self._router not in family:
            self._router = None
            return frozenset(), f"no process of this user listens at port {port}, where the router should"
        return family, ""


def _devices(machine: MachineReading, ours: frozenset[int], note: str) -> list[dict[str, Any]]:
    asked = [reading for reading in machine.devices if reading.vendor in ("amd", "intel")]
    clients = drm_clients.held_by(ours) if asked and not note else {}
    shown = []
    for reading in machine.devices:
        reason = note or (OF_ANOTHER_USER if reading in asked and clients is None else "")
        held = _held(reading, clients or {})
        use = DeviceUse(note=reason) if reason else device_use(reading, ours, held, owners.name_of)
        shown.append(
            device_json(reading)
            | {
                "pci_address": reading.pci_address,
                "reserved_bytes": reading.reserved_bytes,
                "temperature_celsius": reading.temperature_celsius,
                "utilisation_percent": reading.utilisation_percent,
                "power_watts": reading.power_watts,
                "ours_bytes": use.ours_bytes,
                "ours_note": use.note,
                "others": [list(other) for other in use.others],
            }
        )
    return shown


def _held(reading: DeviceReading, clients: dict[str, dict[int, drm_clients.Held]]) -> dict[int, int] | None:
    """What the kernel says that our processes hold; None for a driver that keeps no such account."""
    if reading.vendor not in ("amd", "intel"):
        return None
    shared = is_integrated(reading)
    found = clients.get(reading.pci_address, {})
    return {pid: held.own_bytes + (held.shared_bytes if shared else 0) for pid, held in found.items()}


def device_json(reading: DeviceReading) -> dict[str, Any]:
    """What planning needs of a device."""
    return {
        "index": reading.index,
        "name": reading.name,
        "vendor": reading.vendor,
        "uuid": reading.uuid,
        "total_bytes": reading.total_bytes,
        "used_bytes": reading.used_bytes,
        "shared_total_bytes": reading.shared_total_bytes,
        "shared_used_bytes": reading.shared_used_bytes,
        "integrated": reading.integrated,
    }


def _ram(memory: MemoryReading) -> dict[str, int]:
    return {"total_bytes": memory.total_bytes, "available_bytes": memory.free_bytes}


def _cpu_percent() -> float | None:
    """Since the last call; the first one says 0."""
    try:
        import psutil

        return float(psutil.cpu_percent())
    except (ImportError, OSError, RuntimeError):
        return None


SAMPLER = Sampler()
"""Of this worker."""


@app.task(name=ORDER_TASK)  # type: ignore[untyped-decorator]
def keep_sampling(seconds: float, paths: list[str], router_url: str) -> None:
    """Sample for so long from now on. The latest order holds."""
    until = time.monotonic() + seconds
    SAMPLER.order = Order(until, tuple(dict.fromkeys(paths))[:MOST_PATHS], router_url)


@worker_ready.connect  # type: ignore[untyped-decorator]
def start(**_: Any) -> None:
    if env.role() in ("host", "all"):
        _over.clear()
        threading.Thread(target=_keep_sampling, name="sampling", daemon=True).start()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def stop(**_: Any) -> None:
    _over.set()


def _keep_sampling() -> None:
    while not _over.wait(EVERY_SECONDS):
        if not SAMPLER.is_wanted():
            continue
        with nvidia.kept_open():
            _sample_until_trouble()


def _sample_until_trouble() -> None:
    """The driver's library stays open while all goes well; after trouble it is opened anew."""
    while SAMPLER.is_wanted():
        started = time.monotonic()
        trouble = True
        try:
            sample = SAMPLER.take()
            send(TASK, CONTROL_QUEUE, slug=env.host_slug(), sample=sample)
            trouble = bool(sample["failed"])
        except Exception:  # the broker may be away for a while: the next one tries again
            log.warning("no sample was sent", exc_info=True)
        took = time.monotonic() - started
        pause = max(EVERY_SECONDS - took, _PAUSE_SHARE * took)
        if _over.wait(pause - EVERY_SECONDS if trouble else pause) or trouble:  # after trouble the caller pauses too
            return
