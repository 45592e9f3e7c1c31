"""The context curve of the plan panel in words, as a drawing and as the table that says the same."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.planning.context_curve import RAM, CacheCurve, ContextCurve
from models_app.core.planning.kv_types import KvPair
from quartermaster_site.curve_drawing import CurveDrawing, curve_drawing
from quartermaster_site.figures import count, gib

UNJUDGED = "No curve: this plan cannot be judged, so what another window would hold is not known either."


@dataclass(frozen=True, slots=True)
class CurveCell:
    text: str
    fits: bool


@dataclass(frozen=True, slots=True)
class CurveRow:
    """One window. `note` says what is special about it."""

    tokens: str
    cells: tuple[CurveCell, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the legend. `css` is the class of its swatch, "" for the dot."""

    css: str
    text: str


@dataclass(frozen=True, slots=True)
class CurveSection:
    """What the section prints. Without a drawing there is only the sentence."""

    drawing: CurveDrawing | None
    sentences: tuple[str, ...]
    keys: tuple[Key, ...] = ()
    caption: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[CurveRow, ...] = ()


def curve_section(curve: ContextCurve | None) -> CurveSection:
    """The section of a plan; a sentence instead where there is no curve."""
    if curve is None:
        return CurveSection(None, (UNJUDGED,))
    sentences = _sentences(curve)
    return CurveSection(
        drawing=_drawing(curve, sentences),
        sentences=sentences,
        keys=_keys(curve),
        caption=f"{_place(curve)} by context per conversation, GiB, at this placement.",
        columns=tuple(f"{pair_text(line.pair)} cache" for line in _lines(curve)),
        rows=_rows(curve),
    )


def _lines(curve: ContextCurve) -> tuple[CacheCurve, ...]:
    return (curve.own, curve.smaller) if curve.smaller else (curve.own,)


def _drawing(curve: ContextCurve, sentences: tuple[str, ...]) -> CurveDrawing | None:
    place = curve.place
    own, *smaller = ([(p.ctx_tokens, p.bytes_in(place)) for p in line.points] for line in _lines(curve))
    ends = curve.own.longest_tokens < curve.top_tokens
    return curve_drawing(
        own,
        smaller[0] if smaller else (),
        now=(curve.now.ctx_tokens, curve.now.bytes_in(place)),
        limit_bytes=curve.target_bytes,
        fits_tokens=curve.own.longest_tokens if ends else 0,
        trained_tokens=curve.trained_tokens,
        label=f"{_place(curve)} against context per conversation. {' '.join(sentences)} The table has every figure.",
    )


def _sentences(curve: ContextCurve) -> tuple[str, ...]:
    now = curve.now
    texts = [f"Planned: {count(now.ctx_tokens)} tokens, {gib(now.bytes_in(curve.place))} GiB of {_place(curve)}."]
    texts.append(_end(curve, curve.own, "This placement fits"))
    if curve.smaller:
        texts.append(_end(curve, curve.smaller, f"With a {pair_text(curve.smaller.pair)} cache it fits"))
    return tuple(texts)


def _end(curve: ContextCurve, line: CacheCurve, start: str) -> str:
    """Where one line stops fitting."""
    pooled = curve.place != RAM and curve.device_count > 1
    if not line.longest_tokens:
        return f"{start} at no window: {'a device' if pooled else _place(curve)} is too small for it."
    if line.longest_tokens >= curve.top_tokens:
        return f"{start} at every window up to {_ceiling(curve)}."
    full = "one of the devices" if pooled else _place(curve)
    return f"{start} up to {count(line.longest_tokens)} tokens; then {full} is full."


def _ceiling(curve: ContextCurve) -> str:
    ceiling = count(curve.ceiling_tokens)
    if not curve.trained_tokens:
        return f"{ceiling}; the header names no trained length"
    if curve.ceiling_tokens > curve.trained_tokens:
        return f"{ceiling}, the trained length stretched by RoPE scaling"
    return f"{ceiling}, the trained length"


def _place(curve: ContextCurve) -> str:
    return "RAM" if curve.place == RAM else "VRAM"


def _keys(curve: ContextCurve) -> tuple[Key, ...]:
    keys = [Key("l-a", f"{pair_text(curve.own.pair)} cache")]
    if curve.smaller:
        keys.append(Key("l-b", f"{pair_text(curve.smaller.pair)} cache"))
    if curve.target_bytes:
        keys.append(Key("l-budget", f"budget {gib(curve.target_bytes)} GiB"))
    keys.append(Key("", f"planned {gib(curve.now.bytes_in(curve.place))} GiB"))
    return tuple(keys)


def _rows(curve: ContextCurve) -> tuple[CurveRow, ...]:
    rows = []
    for points in zip(*(line.points for line in _lines(curve)), strict=True):
        tokens = points[0].ctx_tokens
        cells = tuple(CurveCell(gib(point.bytes_in(curve.place)), point.fits) for point in points)
        rows.append(CurveRow(count(tokens), cells, _note(curve, tokens)))
    return tuple(rows)


def _note(curve: ContextCurve, tokens: int) -> str:
    notes = []
    if tokens == curve.now.ctx_tokens:
        notes.append("planned")
    for line in _lines(curve):
        if tokens == line.longest_tokens < curve.top_tokens:
            notes.append(f"most for {pair_text(line.pair)}")
    if tokens == curve.trained_tokens:
        notes.append("trained length")
    return ", ".join(notes)


def pair_text(pair: KvPair) -> str:
    """`f16`, or `q8_0 and f16` where K and V differ."""
    return pair.k if pair.k == pair.v else f"{pair.k} and {pair.v}"
