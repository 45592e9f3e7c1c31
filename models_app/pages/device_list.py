"""Which layers each of several devices gets, as sentences under a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.catalog import Placement
from models_app.core.planning.weight_placement import split_units
from quartermaster_site.figures import gib

SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class MachineDevice:
    """A device as planning sees it: its name, what is fitted, what planning may use."""

    name: str
    capacity_bytes: int
    budget_bytes: int
    backend_id: str = ""
    """What `--device` calls it; blank where the backend was not asked, or the launch has no such list."""
    reserved_bytes: int = 0
    """Left to others, and no part of its capacity."""
    preference: str = ""
    """Of the host's settings: `first` or `last`, "" for the usual."""

    @property
    def label(self) -> str:
        """`GPU 1` of `GPU 1 · RTX 3060`."""
        return self.name.partition(SEPARATOR)[0]


def device_lines(devices: Sequence[MachineDevice], placement: Placement, block_count: int) -> tuple[str, ...]:
    """One sentence a device in launch order; none for a launch on one device, or on none."""
    shares = placement.tensor_split
    if len(devices) < 2 or len(shares) != len(devices) or sum(shares) <= 0:
        return ()
    split = split_units(block_count, placement.gpu_layers, shares)
    total = sum(shares)
    return tuple(
        f"{_name(device)}: {_layers(start, end, block_count)}, {100 * share / total:.0f} % of the split; "
        f"{gib(device.budget_bytes)} GiB may be used{_reserve(device)}{_preference(device)}."
        for device, share, (start, end) in zip(devices, shares, split.ranges, strict=True)
    )


def _name(device: MachineDevice) -> str:
    return f"{device.name} ({device.backend_id})" if device.backend_id else device.name


def _layers(start: int, end: int, block_count: int) -> str:
    """Units are the blocks and, as the last one, the output."""
    last = min(end, block_count) - 1
    blocks = f"layers {start} to {last}" if last > start else f"layer {last}" if last == start else ""
    if start <= block_count < end:
        return f"{blocks}, the output and the fixed buffers" if blocks else "the output and the fixed buffers"
    return blocks or "no layer"


def _reserve(device: MachineDevice) -> str:
    return f", {gib(device.reserved_bytes)} GiB are left to others" if device.reserved_bytes else ""


def _preference(device: MachineDevice) -> str:
    return f"; it is set to be used {device.preference}" if device.preference else ""
