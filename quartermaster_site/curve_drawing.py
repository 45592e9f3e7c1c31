"""Geometry of a curve over token counts: percentages for x, pixels for y, all as attributes, as in `drawings`.

The area above the limit is washed. What lies beyond the drawing is cut where the line leaves it, so that one huge model
does not flatten everything that is of interest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from quartermaster_site.figures import GIB, count

Point = tuple[float, float]
"""Tokens and bytes."""

HEIGHT = 202
TOP, BOTTOM = 10, 182
LEFT, RIGHT = 7.0, 98.0
_ROOM_ABOVE_LIMIT = 1.25
_ROOM_ABOVE_DOT = 1.1
_STEPS_GIB = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_MOST_Y_TICKS = 5
_MOST_X_TICKS = 5
_LEFT_LABEL_FROM = 38.0
"""A mark further left than this many percent has its label on its right, at the bottom, where no line is."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One straight stretch. `css` is the class."""

    css: str
    x1: str
    y1: str
    x2: str
    y2: str


@dataclass(frozen=True, slots=True)
class Label:
    css: str
    x: str
    y: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    x: str
    y: str


@dataclass(frozen=True, slots=True)
class CurveDrawing:
    """A finished drawing: `label` says in words what it shows, `washed_height` is that of the area above the limit."""

    height: int
    washed_height: str
    grid: tuple[Segment, ...]
    lines: tuple[Segment, ...]
    labels: tuple[Label, ...]
    dot: Dot | None
    label: str


@dataclass(frozen=True, slots=True)
class _Scale:
    tokens: float
    size_bytes: float

    def x(self, tokens: float) -> float:
        return LEFT + (RIGHT - LEFT) * tokens / self.tokens

    def y(self, size_bytes: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * size_bytes / self.size_bytes

    def segment(self, css: str, start: Point, end: Point) -> Segment:
        (x1, y1), (x2, y2) = start, end
        return Segment(css, _percent(self.x(x1)), _pixels(self.y(y1)), _percent(self.x(x2)), _pixels(self.y(y2)))

    def upright(self, css: str, tokens: float) -> Segment:
        return self.segment(css, (tokens, 0), (tokens, self.size_bytes))

    def level(self, css: str, size_bytes: float) -> Segment:
        return self.segment(css, (0, size_bytes), (self.tokens, size_bytes))


def curve_drawing(
    own: Sequence[Point],
    smaller: Sequence[Point],
    *,
    now: Point,
    limit_bytes: int,
    fits_tokens: int,
    trained_tokens: int,
    label: str,
) -> CurveDrawing | None:
    """The drawing of one or two lines; None without points. A `limit_bytes` or `fits_tokens` of 0 is not marked."""
    if not own:
        return None
    scale = _scale(own, now, limit_bytes, fits_tokens)
    lines = [*_line(scale, "l-b", smaller), *_line(scale, "l-a", own)]
    grid, labels = _axes(scale)
    if limit_bytes:
        lines.append(scale.level("l-budget", limit_bytes))
    if 0 < trained_tokens <= scale.tokens:
        grid.append(scale.upright("l-axis", trained_tokens))
        labels.append(_beside(scale, "", trained_tokens, "trained", at_top=False))
    if 0 < fits_tokens <= scale.tokens:
        lines.append(scale.upright("l-bad", fits_tokens))
        at_top = scale.x(fits_tokens) >= _LEFT_LABEL_FROM
        labels.append(_beside(scale, "l-badt", fits_tokens, f"fits up to {count(fits_tokens)}", at_top=at_top))
    dot = Dot(_percent(scale.x(now[0])), _pixels(scale.y(now[1]))) if now[0] <= scale.tokens else None
    washed = _pixels(scale.y(limit_bytes) - TOP) if limit_bytes else ""
    return CurveDrawing(HEIGHT, washed, tuple(grid), tuple(lines), tuple(labels), dot, label)


def _scale(own: Sequence[Point], now: Point, limit_bytes: int, fits_tokens: int) -> _Scale:
    """As far to the right as the points go, unless that is far beyond what fits or is planned."""
    last = own[-1][0]
    reach = max(now[0], fits_tokens)
    wide = 4096.0
    while wide < 2 * reach:
        wide *= 2
    tokens = last if last <= 2 * wide else wide
    most = limit_bytes * _ROOM_ABOVE_LIMIT if limit_bytes else max(size for _, size in own) * _ROOM_ABOVE_DOT
    return _Scale(max(tokens, reach, 1), max(most, now[1] * _ROOM_ABOVE_DOT, 1))


def _line(scale: _Scale, css: str, points: Sequence[Point]) -> list[Segment]:
    shown = _cut(points, scale)
    return [scale.segment(css, start, end) for start, end in pairwise(shown)]


def _cut(points: Sequence[Point], scale: _Scale) -> list[Point]:
    """The points up to where the line leaves the drawing, to the right or upwards."""
    shown: list[Point] = []
    for point in points:
        if point[0] <= scale.tokens and point[1] <= scale.size_bytes:
            shown.append(point)
            continue
        if shown:
            (x0, y0), (x1, y1) = shown[-1], point
            across = (scale.tokens - x0) / (x1 - x0) if x1 > scale.tokens else 1.0
            up = (scale.size_bytes - y0) / (y1 - y0) if y1 > scale.size_bytes else 1.0
            part = min(across, up)
            shown.append((x0 + (x1 - x0) * part, y0 + (y1 - y0) * part))
        break
    return shown


def _axes(scale: _Scale) -> tuple[list[Segment], list[Label]]:
    grid, labels = [scale.level("l-axis", 0)], []
    size_gib = scale.size_bytes / GIB
    step = next((step for step in _STEPS_GIB if size_gib / step <= _MOST_Y_TICKS), size_gib / _MOST_Y_TICKS)
    for index in range(int(size_gib / step + 1e-9) + 1):
        size = index * step * GIB
        if index:
            grid.append(scale.level("l-tick", size))
        labels.append(Label("", _percent(LEFT - 1), _pixels(scale.y(size) + 4), "end", f"{index * step:g}"))
    window = 256
    while scale.tokens / window > _MOST_X_TICKS:
        window *= 2
    for tokens in range(0, int(scale.tokens) + 1, window):
        x = scale.x(tokens)
        labels.append(
            Label("", _percent(x), str(BOTTOM + 16), "end" if x > RIGHT - 2 else "middle", short_tokens(tokens))
        )
    return grid, labels


def _beside(scale: _Scale, css: str, tokens: float, text: str, *, at_top: bool) -> Label:
    """A label beside an upright mark: left of it where there is room."""
    x = scale.x(tokens)
    on_left = x >= _LEFT_LABEL_FROM
    y = TOP + 11 if at_top else BOTTOM - 6
    return Label(css, _percent(x - 1.5 if on_left else x + 1.5), str(y), "end" if on_left else "start", text)


def short_tokens(tokens: int) -> str:
    """A window on an axis: `32k`, `1M`, `512`."""
    for size, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{letter}"
    return str(tokens)


def _percent(value: float) -> str:
    return f"{round(value, 2):g}%"


def _pixels(value: float) -> str:
    return f"{round(value, 1):g}"
