"""Which devices a plan may use (sizing.md 14.1): a policy over raw readings.

The same reading means opposite things on an APU and on a card: an APU's shared pool is its GPU memory, a card's is a
slow aperture into the host. So the pool is folded first, and only then is the floor applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gpus_app.core.readings import DeviceReading
from gpus_app.core.units import GIB, from_gib

_INTEGRATED_NAMES = ("ryzen", "athlon", "radeon graphics")
_CARVE_OUT_BYTES = 8 * GIB
"""No card this small has a shared pool three times its own memory."""
_SHARED_RATIO = 3
FIRST, NORMAL, LAST, NEVER = "first", "", "last", "never"
RANKS: Mapping[str, int] = {FIRST: 0, NORMAL: 1, LAST: 2, NEVER: 3}
"""What a person prefers of a device -> its place in the order in which devices are filled."""
PREFERENCE_OF_RANK: Mapping[int, str] = {rank: word for word, rank in RANKS.items()}
_CAPACITY_SHARE = 0.85
"""A busy card still counts with this share of its memory when a plan is made for later."""


@dataclass(frozen=True, slots=True)
class DevicePolicy:
    """The settings `minGpuVramGB`, `sharedMemory` (auto, on, off), `poolIntegratedGpu`, `multiGpu`."""

    min_vram_gib: float = 3.0
    shared_memory: str = "auto"
    pool_integrated: bool = False
    multi_gpu: bool = True
    reserve_gib: Mapping[int, float] = field(default_factory=dict)
    """Index of a device -> what of it plans leave to others, such as a desktop."""
    preference: Mapping[int, str] = field(default_factory=dict)
    """Index of a device -> `first`, `last` or `never`; all others are filled in between."""


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A device after folding, without what is reserved. The shared figures are part of total and free where the pool
    counts.
    """

    index: int
    name: str
    integrated: bool
    shared_counted: bool
    total_bytes: int
    free_bytes: int
    shared_total_bytes: int = 0
    shared_free_bytes: int = 0
    reserve_bytes: int = 0
    partition: bool = False
    """A MIG instance."""
    rank: int = RANKS[NORMAL]
    """Of the order in which devices are filled; the lower the sooner."""

    @property
    def used_bytes(self) -> int:
        return self.total_bytes - self.free_bytes

    @property
    def capacity_bytes(self) -> int:
        """What a plan may hope for once the present tenants are gone."""
        return max(self.free_bytes, int(_CAPACITY_SHARE * self.total_bytes))


@dataclass(frozen=True, slots=True)
class GpuSet:
    """The devices that plans may use, by index."""

    devices: tuple[GpuDevice, ...] = ()

    def __len__(self) -> int:
        return len(self.devices)

    @property
    def free_bytes(self) -> int:
        return sum(device.free_bytes for device in self.devices)

    @property
    def total_bytes(self) -> int:
        return sum(device.total_bytes for device in self.devices)

    @property
    def live_main(self) -> int | None:
        """Position of the device with most free memory of those that are filled first, the first on ties."""
        return _first_largest(self.devices, lambda device: (-device.rank, device.free_bytes))

    @property
    def plan_main(self) -> int | None:
        """Position of the device with the largest capacity of those that are filled first, the first on ties."""
        return _first_largest(self.devices, lambda device: (-device.rank, device.capacity_bytes))


def is_integrated(reading: DeviceReading) -> bool:
    """The kernel's word first, then the name, then the proportion of the pools."""
    if reading.total_bytes <= 0 or reading.shared_total_bytes <= 0:
        return False
    if reading.integrated is not None:
        return reading.integrated
    name = reading.name.lower()
    if any(mark in name for mark in _INTEGRATED_NAMES):
        return True
    small = reading.total_bytes <= _CARVE_OUT_BYTES
    return small and reading.shared_total_bytes >= _SHARED_RATIO * reading.total_bytes


def fold(reading: DeviceReading, policy: DevicePolicy) -> GpuDevice:
    """One reading with its shared pool added where the policy counts it, and the reserve taken away.

    What others use already is part of the reserve, not on top of it.
    """
    integrated = is_integrated(reading)
    mode = policy.shared_memory if policy.shared_memory in ("on", "off") else "auto"
    wanted = mode == "on" or (mode == "auto" and integrated)
    counted = wanted and reading.shared_total_bytes > 0
    total, used, shared_free = reading.total_bytes, reading.used_bytes, 0
    if counted:
        total += reading.shared_total_bytes
        used += reading.shared_used_bytes
        shared_free = max(0, reading.shared_total_bytes - reading.shared_used_bytes)
    reserve = min(total, from_gib(max(0.0, policy.reserve_gib.get(reading.index, 0.0))))
    usable = total - reserve
    return GpuDevice(
        index=reading.index,
        name=reading.name,
        integrated=integrated,
        shared_counted=counted,
        total_bytes=usable,
        free_bytes=min(usable, max(0, total - used)),
        shared_total_bytes=reading.shared_total_bytes,
        shared_free_bytes=shared_free,
        reserve_bytes=reserve,
        partition=reading.partition,
        rank=RANKS[policy.preference.get(reading.index, NORMAL)],
    )


def newest(readings: Iterable[DeviceReading]) -> list[DeviceReading]:
    """One reading per device, the newest, by index."""
    kept: dict[int, DeviceReading] = {}
    for reading in readings:
        before = kept.get(reading.index)
        if before is None or reading.sample >= before.sample:
            kept[reading.index] = reading
    return [kept[index] for index in sorted(kept)]


def gpu_set(readings: Iterable[DeviceReading], policy: DevicePolicy | None = None) -> GpuSet:
    """The eligible devices, by index; integrated ones only where nothing else is left or the policy pools them."""
    policy = policy or DevicePolicy()
    folded = [fold(reading, policy) for reading in newest(readings)]
    devices = [device for device in folded if _above_floor(device, policy) and (device.partition or _is_wanted(device))]
    if any(not device.integrated for device in devices) and not policy.pool_integrated:
        devices = [device for device in devices if not device.integrated]
    found = GpuSet(tuple(filter(_is_wanted, _usable_together(devices))))
    main = found.plan_main
    if not policy.multi_gpu and main is not None:
        return GpuSet((found.devices[main],))
    return found


def _usable_together(devices: list[GpuDevice]) -> list[GpuDevice]:
    """A CUDA process sees whole cards, or where there are none the first MIG instance: never several instances."""
    whole = [device for device in devices if not device.partition]
    return whole or devices[:1]


def exclusion(device: GpuDevice, policy: DevicePolicy, kept: GpuSet) -> str:
    """Why a device that is not in the set `kept` was left out, in words for a page."""
    if not _is_wanted(device):
        return "set to be never used"
    if not _above_floor(device, policy):
        reserved = f", {device.reserve_bytes / GIB:g} GiB of it reserved" if device.reserve_bytes else ""
        return f"has less than {policy.min_vram_gib:g} GiB to use{reserved}"
    if _is_displaced(device, policy, kept):
        return "integrated, beside a card of its own memory"
    if device.partition:
        return "a MIG instance: a launch uses whole cards, or the first instance alone"
    return "planning uses one card only"


def describe(readings: Iterable[DeviceReading], policy: DevicePolicy | None = None) -> str:
    """The decision in words, for a bug report from a machine that nobody else has."""
    policy = policy or DevicePolicy()
    kept = gpu_set(readings := newest(readings), policy)
    lines = [_describe_device(fold(reading, policy), policy, kept) for reading in readings]
    if not kept.devices:
        return "\n".join([*lines, "no GPU counts: there is no eligible budget"])
    mode = "multi" if policy.multi_gpu else "single"
    lines.append(
        f"eligible budget ({mode}): {kept.total_bytes / GIB:.1f} GB total, {kept.free_bytes / GIB:.1f} GB free"
        f" over {len(kept)} device(s)"
    )
    return "\n".join(lines)


def _describe_device(device: GpuDevice, policy: DevicePolicy, kept: GpuSet) -> str:
    kind = "integrated" if device.integrated else "dedicated"
    shared = "counted" if device.shared_counted else "not counted"
    text = (
        f"GPU {device.index} {device.name}: {kind}, shared pool {device.shared_total_bytes / GIB:.1f} GB {shared},"
        f" {device.total_bytes / GIB:.1f} GB usable"
    )
    if device.reserve_bytes:
        text += f", {device.reserve_bytes / GIB:.1f} GB reserved"
    if not _above_floor(device, policy):
        return f"{text}, DROPPED (under the {policy.min_vram_gib:.1f} GB floor)"
    if not _is_wanted(device):
        return f"{text}, EXCLUDED (set to be never used)"
    if any(device.index == member.index for member in kept.devices):
        return text
    reason = "integrated GPU beside a dedicated one" if _is_displaced(device, policy, kept) else "multi-GPU is off"
    reason = "MIG instance" if device.partition else reason
    return f"{text}, EXCLUDED ({reason})"


def _is_displaced(device: GpuDevice, policy: DevicePolicy, kept: GpuSet) -> bool:
    """By a card: of integrated devices alone each counts."""
    cards = any(not member.integrated for member in kept.devices)
    return device.integrated and cards and not policy.pool_integrated


def _above_floor(device: GpuDevice, policy: DevicePolicy) -> bool:
    return device.total_bytes > 0 and device.total_bytes >= from_gib(policy.min_vram_gib)


def _is_wanted(device: GpuDevice) -> bool:
    return device.rank < RANKS[NEVER]


def _first_largest(devices: Sequence[GpuDevice], key: Callable[[GpuDevice], tuple[int, int]]) -> int | None:
    if not devices:
        return None
    sizes = [key(device) for device in devices]
    return sizes.index(max(sizes))
