"""How layers are shared among several devices (sizing.md 14.2 and 14.3). Ratios have two decimals."""

from __future__ import annotations

from collections.abc import Sequence

from gpus_app.core.gpu_set import GpuSet
from gpus_app.core.runtimes import runtime_gib
from gpus_app.core.units import GIB, round_half_up


def split_ratio(
    capacity_gib: Sequence[float], main: int | None, main_fixed_gib: float, per_device_gib: float
) -> tuple[float, ...]:
    """Shares by the room that is left on each device; () where there is nothing to share.

    `main_fixed_gib` is what lies on the main device whatever the ratio is. The charge of the further devices must not
    be inside it: each of them is charged `per_device_gib` here.
    """
    if len(capacity_gib) < 2:
        return ()
    rooms = [
        max(0.0, capacity - (main_fixed_gib if position == main else per_device_gib))
        for position, capacity in enumerate(capacity_gib)
    ]
    return _shares(rooms)


def live_split(devices: GpuSet, main_fixed_gib: float, runtime: str) -> tuple[float, ...]:
    """The ratio for a launch at this moment."""
    free = [device.free_bytes / GIB for device in devices.devices]
    return split_ratio(free, devices.live_main, main_fixed_gib, runtime_gib(runtime))


def plan_split(devices: GpuSet, main_fixed_gib: float, runtime: str) -> tuple[float, ...]:
    """The ratio to write into a config: by capacity, not by the moment; by totals where no room is left."""
    capacity = [device.capacity_bytes / GIB for device in devices.devices]
    ratio = split_ratio(capacity, devices.plan_main, main_fixed_gib, runtime_gib(runtime))
    if ratio or len(devices) < 2:
        return ratio
    return _shares([device.total_bytes / GIB for device in devices.devices])


def extra_device_gib(devices: int, runtime: str) -> float:
    """Overhead of the devices besides the main one."""
    return max(0, devices - 1) * runtime_gib(runtime)


def main_last_order(ids: Sequence[int], main_id: int) -> tuple[int, ...]:
    """Positions with the main device at the end, () where it is not among them.

    llama.cpp puts the output weights on the last device of the `--device` list; `--main-gpu` moves nothing in layer
    mode.
    """
    if main_id not in ids:
        return ()
    main = list(ids).index(main_id)
    return (*(position for position in range(len(ids)) if position != main), main)


def permute_split(split: Sequence[float], order: Sequence[int]) -> tuple[float, ...]:
    """The ratio in the order of the devices; unchanged where the lengths differ."""
    if len(split) != len(order):
        return tuple(split)
    return tuple(split[position] for position in order)


def format_split(split: Sequence[float]) -> str:
    """The value of `--tensor-split`."""
    return ",".join(f"{share:.10g}" for share in split)


def _shares(rooms: Sequence[float]) -> tuple[float, ...]:
    total = sum(rooms)
    if total <= 0:
        return ()
    return tuple(round_half_up(room / total, 2) for room in rooms)
