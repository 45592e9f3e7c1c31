"""Geometry of the drawings: percentages for x, pixels for y, all as attributes, so that no style is ever inline.

The memory bar: one row of 50 px per device, all rows on one GiB scale, so that a 12 GiB card is half as long as a
24 GiB one. Labels stay text of a fixed size, since the drawing has no viewBox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quartermaster_site.figures import GIB, gib

ROW_PIXELS = 50
AXIS_PIXELS = 14
LABEL_SHARE = 0.2
"""A part narrower than this share of the drawing has no room for its label."""
_SMALLEST_STEP_GIB = 0.25
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of a bar. `key` is the CSS class after `s-`."""

    key: str
    label: str
    short: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Track:
    """One device: what is planned or used on it, what it may use, what is fitted."""

    name: str
    note: str
    parts: tuple[Part, ...]
    capacity_bytes: int
    budget_bytes: int | None = None

    @property
    def used_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)


@dataclass(frozen=True, slots=True)
class Tick:
    x: str
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Stretch:
    key: str
    title: str
    x: str
    width: str
    label: str
    label_x: str


@dataclass(frozen=True, slots=True)
class BarRow:
    name: str
    note: str
    text_y: int
    bar_y: int
    label_y: int
    line_top: int
    line_end: int
    width: str
    stretches: tuple[Stretch, ...]
    budget_x: str


@dataclass(frozen=True, slots=True)
class MemoryBar:
    """A finished drawing: `label` says in words what it shows."""

    height: int
    axis_y: int
    axis_end: int
    ticks: tuple[Tick, ...]
    rows: tuple[BarRow, ...]
    label: str


@dataclass(frozen=True, slots=True)
class MiniBar:
    """One track, one fill, one budget line."""

    key: str
    width: str
    budget_x: str


def memory_bar(tracks: Sequence[Track], label: str) -> MemoryBar | None:
    """The drawing of these devices, None when there is nothing to draw a scale from."""
    scale = max((max(track.capacity_bytes, track.used_bytes, track.budget_bytes or 0) for track in tracks), default=0)
    if scale <= 0:
        return None
    end = ROW_PIXELS * len(tracks)
    rows = tuple(_row(track, ROW_PIXELS * index, scale) for index, track in enumerate(tracks))
    return MemoryBar(end + AXIS_PIXELS, end + AXIS_PIXELS - 2, end, _ticks(scale), rows, label)


def mini_bar(used_bytes: int, capacity_bytes: int, budget_bytes: int, *, loaded: bool = False) -> MiniBar | None:
    """The small bar of a table row; None without a scale."""
    scale = max(capacity_bytes, budget_bytes)
    if scale <= 0:
        return None
    key = "bad" if used_bytes > budget_bytes > 0 else "used" if loaded else "weights"
    return MiniBar(key, _percent(min(used_bytes, scale), scale), _percent(budget_bytes, scale) if budget_bytes else "")


def _row(track: Track, top: int, scale: int) -> BarRow:
    stretches = []
    start = 0
    for part in track.parts:
        if part.size_bytes > 0:
            stretches.append(_stretch(part, start, scale))
            start += part.size_bytes
    budget = _percent(track.budget_bytes, scale) if track.budget_bytes is not None else ""
    return BarRow(
        name=track.name,
        note=track.note,
        text_y=top + 11,
        bar_y=top + 18,
        label_y=top + 33,
        line_top=top + 14,
        line_end=top + 44,
        width=_percent(max(track.capacity_bytes, 0), scale),
        stretches=tuple(stretches),
        budget_x=budget,
    )


def _stretch(part: Part, start_bytes: int, scale: int) -> Stretch:
    wide = part.size_bytes / scale > LABEL_SHARE and bool(part.short)
    return Stretch(
        key=part.key,
        title=f"{part.label} {gib(part.size_bytes)} GiB",
        x=_percent(start_bytes, scale),
        width=_percent(part.size_bytes, scale),
        label=f"{part.short} {gib(part.size_bytes, 1)}" if wide else "",
        label_x=_percent(start_bytes + part.size_bytes / 2, scale),
    )


def _ticks(scale: int) -> tuple[Tick, ...]:
    scale_gib = scale / GIB
    step = _SMALLEST_STEP_GIB
    while scale_gib / step > _MOST_TICKS:
        step *= 2
    last = int(scale_gib / step + 1e-9)
    ticks = []
    for index in range(last + 1):
        at_end = index * step >= scale_gib * 0.94
        anchor = "start" if index == 0 else "end" if at_end else "middle"
        text = f"{index * step:g}" + (" GiB" if index == last else "")
        ticks.append(Tick(_percent(min(index * step * GIB, scale), scale), text, anchor))
    return tuple(ticks)


def _percent(value: float, scale: float) -> str:
    return f"{round(value / scale * 100, 2):g}%"
