"""What of a device's memory is in use by our launches, and what by others (sizing.md 16.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpus_app.core.readings import DeviceReading
from gpus_app.core.units import GIB

_SURPRISING_BYTES = GIB
"""A driver keeps less than that for itself."""
_MOST_ASLEEP = 1.2
"""Of the time that passed: both are read a moment apart, more is another kind of figure."""
MOST_NAMED = 5
"""Of the processes of others on one device, the largest."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Bytes of one device in use. `ours_bytes` is None where nobody can tell, for the reason that `note` gives."""

    ours_bytes: int | None = None
    note: str = ""
    others: tuple[tuple[str, int], ...] = ()
    """Name and bytes of processes that are not ours, the largest first; the sum need not be all that others use."""

    def foreign_bytes(self, in_use_bytes: int, reserved_bytes: int = 0) -> int | None:
        """What others use, without what the driver keeps for itself."""
        if self.ours_bytes is None:
            return None
        return max(0, in_use_bytes - reserved_bytes - self.ours_bytes)


def device_use(
    reading: DeviceReading,
    ours: frozenset[int],
    held: Mapping[int, int] | None,
    name_of: Callable[[int], str | None],
) -> DeviceUse:
    """`ours` are our processes; `held` is what the kernel says that these hold, None where it says nothing."""
    listed = reading.processes
    if listed is None and held is None:
        return DeviceUse(note="the driver does not tell which process holds what")
    if not listed and held is None and reading.used_bytes - reading.reserved_bytes > _SURPRISING_BYTES:
        return DeviceUse(note="the driver names no process: it runs in another container")
    sizes = {process.pid: process.used_bytes for process in listed or ()}
    names = {pid: name_of(pid) for pid in sizes if pid not in ours}
    unseen = [pid for pid, name in names.items() if name is None]
    if unseen and held is None:
        return DeviceUse(note="processes of another container hold memory here")
    known = dict(held or {})
    for pid in ours & sizes.keys():
        known[pid] = max(sizes[pid], known.get(pid, 0))
    others = sorted(((names[pid] or "?", sizes[pid]) for pid in names), key=lambda item: (-item[1], item[0]))
    return DeviceUse(sum(known.values()), others=tuple(others[:MOST_NAMED]))


def busy_percent(slept_milliseconds: int, passed_seconds: float) -> float | None:
    """How much of the time a device was awake; None where the figures make no sense, as when the machine slept."""
    if passed_seconds <= 0 or slept_milliseconds < 0:
        return None
    asleep = slept_milliseconds / (1000 * passed_seconds)
    return round(100 * (1 - min(1.0, asleep)), 1) if asleep <= _MOST_ASLEEP else None
