"""Bytes, GiB and the few rounding rules that the formats prescribe (sizing.md 1)."""

from __future__ import annotations

import math

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def round_half_up(value: float, digits: int) -> float:
    """Round with halves away from zero; Python's `round` goes to the even neighbour instead."""
    factor = 10.0**digits
    return math.copysign(math.floor(abs(value) * factor + 0.5) / factor, value)


def to_gib(size_bytes: float, digits: int = 2) -> float:
    """Bytes as GiB, rounded half up."""
    return round_half_up(size_bytes / GIB, digits)


def from_gib(value_gib: float) -> int:
    """GiB as whole bytes (rounded down). Endless sizes are cut to an exbibyte, which no machine has; NaN is nothing."""
    if math.isnan(value_gib):
        return 0
    return int(max(-GIB, min(value_gib, GIB)) * GIB)


def floor_gib(value_gib: float) -> float:
    """Cut to one decimal; the epsilon keeps 11.9 from becoming 11.8 through binary error."""
    return math.floor(value_gib * 10 + 1e-9) / 10


def pad(value: int, multiple: int) -> int:
    """The smallest multiple that is not below `value`."""
    return -(-value // multiple) * multiple
