"""Where the weights of a model lie, summed while its tensor table is walked.

A table of a thousand tensors becomes a few numbers per block: what a launch can move to a device, what `--n-cpu-moe`
can take off it again, and the widths that the compute buffer depends on. Rounding per compute-buffer.md 3.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from models_app.core.catalog import LayerWeights, TensorInfo, WeightTable
from models_app.core.units import pad

ALIGNMENT_BYTES = 32
MAX_BLOCKS = 4096
"""Block numbers from here on are no blocks of a model but a broken or hostile name; they count as global tensors."""
MAX_GLOBALS = 512
"""So many names outside the blocks are kept; the bytes of further ones are summed under `OTHER_GLOBALS`."""
OTHER_GLOBALS = "*"

_BLOCK = re.compile(r"(?:enc\.|dec\.)?blk\.(\d{1,9})\.(.+)", re.ASCII | re.DOTALL)
_EXPERT = re.compile(r"ffn_(?:up|down|gate|gate_up)_(?:ch)?exps(?![a-z_])", re.ASCII)
_EMPTY_LAYER = LayerWeights()
_UP_EXPERTS = ("ffn_up_exps", "ffn_gate_exps", "ffn_gate_up_exps")


class WeightTally:
    """Sums tensors block by block. Feed it every tensor of a model (all shards of a set), then ask for the table."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, int]] = {}
        self._globals: dict[str, int] = {}
        self._total_bytes = 0
        self._complete = True

    def add(self, tensor: TensorInfo) -> None:
        """Count one tensor. One of unknown type has no size: it counts nothing and makes the table incomplete."""
        if tensor.size_bytes is None:
            self._complete = False
        size_bytes = pad(tensor.size_bytes or 0, ALIGNMENT_BYTES)
        self._total_bytes += size_bytes
        match = _BLOCK.match(tensor.name)
        if match is None or int(match[1]) >= MAX_BLOCKS:
            self._add_global(tensor.name, size_bytes)
            return
        facts = self._blocks.setdefault(int(match[1]), {})
        part, _, kind = match[2].partition(".")
        _count_bytes(facts, part, size_bytes, is_expert=_EXPERT.match(part) is not None)
        if kind.endswith("weight") and len(tensor.shape) > 1:
            _note_widths(facts, part, tensor.shape)

    def table(self) -> WeightTable:
        """The sums so far. A block without tensors below the highest one is there and empty."""
        count = max(self._blocks, default=-1) + 1
        return WeightTable(
            layers=tuple(
                _layer(self._blocks[index]) if index in self._blocks else _EMPTY_LAYER for index in range(count)
            ),
            globals=MappingProxyType(dict(self._globals)),
            total_bytes=self._total_bytes,
            complete=self._complete,
        )

    def _add_global(self, name: str, size_bytes: int) -> None:
        if name not in self._globals and len(self._globals) >= MAX_GLOBALS:
            name = OTHER_GLOBALS
        self._globals[name] = self._globals.get(name, 0) + size_bytes


def _count_bytes(facts: dict[str, int], part: str, size_bytes: int, *, is_expert: bool) -> None:
    kind = "expert_bytes" if is_expert else "other_bytes"
    facts[kind] = facts.get(kind, 0) + size_bytes
    _raise(facts, "largest_tensor_bytes", size_bytes)
    if part in _UP_EXPERTS:
        _raise(facts, "largest_up_bytes", size_bytes)
    elif part == "ffn_down_exps":
        _raise(facts, "largest_down_bytes", size_bytes)


def _note_widths(facts: dict[str, int], part: str, shape: tuple[int, ...]) -> None:
    """Shapes are innermost first: columns (the input of a matrix), then rows (its output)."""
    columns, rows = shape[0], shape[1]
    match part:
        case "ffn_up":
            _raise(facts, "feed_forward_width", rows)
        case "ffn_down":
            _raise(facts, "down_width", columns)
        case "ffn_gate":
            facts["gated"] = 1
        case "ffn_up_exps":
            _raise(facts, "expert_width", rows)
        case "ffn_gate_exps":
            facts["expert_gated"] = 1
        case "ffn_gate_up_exps":
            facts["expert_gated"] = 1
            _raise(facts, "expert_width", rows // 2)
        case "ffn_up_shexp":
            _raise(facts, "shared_expert_width", rows)


def _raise(facts: dict[str, int], key: str, value: int) -> None:
    if value > facts.get(key, 0):
        facts[key] = value


def _layer(facts: dict[str, int]) -> LayerWeights:
    numbers = {key: value for key, value in facts.items() if key not in ("gated", "expert_gated")}
    down = facts.get("down_width", 0)
    fused = down > 0 and facts.get("feed_forward_width", 0) == 2 * down
    return LayerWeights(**numbers, gated="gated" in facts or fused, expert_gated="expert_gated" in facts)
