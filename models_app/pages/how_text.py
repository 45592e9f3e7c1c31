"""What "how?" prints under the sentence of a memory term: its addends by place, each as the product that it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.catalog import MemoryTerm, TermPart
from quartermaster_site.figures import count, size


@dataclass(frozen=True, slots=True)
class HowPlace:
    """The addends in one place. `name` is empty where there is only one."""

    name: str
    lines: tuple[str, ...]


def how_places(term: MemoryTerm, labels: Sequence[str]) -> tuple[HowPlace, ...]:
    """Devices in order, under their labels, then RAM; places that hold nothing of this term are left out."""
    places = [*range(len(term.device_bytes)), None]
    found = [(place, [part for part in term.parts if part.device == place and part.size_bytes]) for place in places]
    held = [(place, parts) for place, parts in found if parts]
    several = len(held) > 1 or len(term.device_bytes) > 1
    return tuple(HowPlace(_place_name(place, labels) if several else "", _lines(parts)) for place, parts in held)


def _place_name(device: int | None, labels: Sequence[str]) -> str:
    if device is None:
        return "RAM"
    return labels[device] if len(labels) > 1 else "VRAM"


def _lines(parts: list[TermPart]) -> tuple[str, ...]:
    """Each addend, and what they come to where there are several."""
    lines = [_line(part) for part in parts]
    if len(parts) > 1:
        lines.append(f"together {size(sum(part.size_bytes for part in parts))}")
    return tuple(lines)


def _line(part: TermPart) -> str:
    product = " × ".join(f"{_number(value)} {unit}" for value, unit in part.factors)
    return f"{part.label}: {product} = {size(part.size_bytes)}" if product else f"{part.label}: {size(part.size_bytes)}"


def _number(value: float) -> str:
    return count(int(value)) if value == int(value) else f"{value:g}"
