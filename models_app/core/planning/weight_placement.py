"""Which device holds which block and which tensor outside the blocks (compute-buffer.md 3).

Units are the blocks and, as one more, the output. `-ngl` fills devices with units from the last one backwards; which
device a unit goes to is decided by cumulative shares, in single precision as llama.cpp does it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from models_app.core.planning.architectures import Architecture

_HOST = frozenset({"token_embd.weight", "per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"})
_OUTPUT_PREFIXES = ("output", "altup_", "cls", "dense_2", "dense_3", "enc.output", "dec.output")
_ROPE_PREFIXES = ("rope_freqs", "rope_factors")
_INPUT_NORM = "token_embd_norm"
_EMBEDDING = "token_embd.weight"
_OUTPUT = "output.weight"


class GlobalWeights(NamedTuple):
    """Bytes outside the blocks, by the rule that places them."""

    host: int = 0
    first_block: int = 0
    """On the device of block 0."""
    rope: int = 0
    """Once on every device with a block that reads them."""
    output: int = 0
    tied: int = 0
    """The embedding again, as the output matrix."""


class Split(NamedTuple):
    """Where the units of a launch go: blocks before `first_unit` stay on the host."""

    first_unit: int
    ranges: tuple[tuple[int, int], ...]
    """For each device the half-open range of its units; (n, n) for a device that gets none."""


def global_weights(tensors: Mapping[str, int], rules: Architecture) -> GlobalWeights:
    """Sort the tensors outside the blocks by rule."""
    host = first_block = rope = output = 0
    for name, size_bytes in tensors.items():
        if name in _HOST:
            host += size_bytes
        elif name.startswith(_ROPE_PREFIXES):
            rope += size_bytes
        elif name.startswith(_OUTPUT_PREFIXES) or (rules.input_norm_is_output and name.startswith(_INPUT_NORM)):
            output += size_bytes
        else:
            first_block += size_bytes
    tied = tensors.get(_EMBEDDING, 0) if rules.tied_output and _OUTPUT not in tensors else 0
    return GlobalWeights(host, first_block, rope, output, tied)


@lru_cache(maxsize=4096)
def split_units(blocks: int, gpu_layers: int | None, shares: tuple[float, ...]) -> Split:
    """Ranges of units for `-ngl` (None = all) over devices with these shares (each >= 0, one above 0)."""
    units = blocks + 1
    active = units if gpu_layers is None else min(max(0, gpu_layers), units)
    if not shares:
        active = 0
    first = units - active
    limits = cumulative_shares(shares)
    ranges, start = [], first
    for limit in limits:
        end = max(start, first + _units_below(limit, active))
        ranges.append((start, end))
        start = end
    return Split(first, tuple(ranges))


def cumulative_shares(shares: Sequence[float]) -> list[float]:
    """Running sums over the total, rounded to single precision at each step."""
    sums: list[float] = []
    total = 0.0
    for share in shares:
        total = _single(total + _single(share))
        sums.append(total)
    return [_single(value / total) for value in sums]


def _units_below(limit: float, active: int) -> int:
    """How many of the units 0, 1, ... lie before a device's limit: unit j does while j / active < limit."""
    low, high = 0, active
    while low < high:
        middle = (low + high) // 2
        if _single(middle / active) < limit:
            low = middle + 1
        else:
            high = middle
    return low


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf")
