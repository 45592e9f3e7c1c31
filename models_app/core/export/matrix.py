"""A VRAM budget as allowed combinations, for llama-swap's matrix (config-yaml.md 12.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from models_app.core.export.document import Entry
from models_app.core.units import GIB

MAX_SETS = 200
UNITS_PER_GB = 1000
"""Costs are compared as whole thousandths, so that 0.1 + 0.2 fits into 0.3."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model of the file. `helper` uses no VRAM and may run beside everything; `est_vram_gb` 0 is unknown."""

    id: str
    base: str
    est_vram_gb: float = 0.0
    helper: bool = False
    evict_cost: int = 1


@dataclass(frozen=True, slots=True)
class _Block:
    """All profiles of one file, of which one runs at a time."""

    names: tuple[str, ...]
    cost: int
    evict_cost: int
    position: int


def candidate(entry: Entry, helper: bool) -> Candidate:
    """An entry of a document as the matrix sees it. Big files are dearer to load again, so dearer to evict."""
    estimate = float(entry.fields.get("estVramGB") or 0)
    return Candidate(entry.id, entry.base or entry.id, estimate, helper, max(1, math.ceil(entry.size_bytes / GIB)))


def matrix_block(models: Sequence[Candidate], budget_gb: float) -> dict[str, Any]:
    """The `matrix` block; empty without models and with more than `MAX_SETS` maximal combinations."""
    if not models:
        return {}
    names = {model.id: f"m{number}" for number, model in enumerate(models, 1)}
    helpers = [names[model.id] for model in models if model.helper]
    gpu = [model for model in models if not model.helper]
    sets = _maximal_sets(_blocks([model for model in gpu if model.est_vram_gb > 0], names), budget_gb)
    if sets is None:
        return {}
    unknown = [model for model in gpu if model.est_vram_gb <= 0]
    expressions = [" & ".join([*(_choice(block) for block in blocks), *helpers]) for blocks in sets]
    expressions += [" & ".join([names[model.id], *helpers]) for model in unknown]
    if not expressions:
        expressions = [" & ".join(helpers)]
    return {
        "vars": {short: model_id for model_id, short in names.items()},
        "evict_costs": {names[model.id]: model.evict_cost for model in gpu},
        "sets": {f"s{number}": text for number, text in enumerate(expressions, 1)},
    }


def _choice(block: _Block) -> str:
    return f"({' | '.join(block.names)})"


def _blocks(models: Sequence[Candidate], names: dict[str, str]) -> list[_Block]:
    grouped: dict[str, list[Candidate]] = {}
    for model in models:
        grouped.setdefault(model.base, []).append(model)
    return [
        _Block(
            names=tuple(names[model.id] for model in profiles),
            cost=round(max(model.est_vram_gb for model in profiles) * UNITS_PER_GB),
            evict_cost=max(model.evict_cost for model in profiles),
            position=position,
        )
        for position, profiles in enumerate(grouped.values())
    ]


def _maximal_sets(blocks: Sequence[_Block], budget_gb: float) -> list[list[_Block]] | None:
    """Combinations to which nothing can be added, best first; None when there are too many of them.

    Best: most blocks, then the least work to load it all again, then emitted order. A block dearer than the whole
    budget runs alone.
    """
    budget = round(budget_gb * UNITS_PER_GB)
    sets = [[block] for block in blocks if block.cost > budget]
    for found in _fitting_sets([block for block in blocks if block.cost <= budget], budget):
        sets.append(found)
        if len(sets) > MAX_SETS:
            return None
    return sorted(
        sets,
        key=lambda found: (
            -len(found),
            sum(block.evict_cost for block in found),
            [block.position for block in found],
        ),
    )


def _fitting_sets(blocks: Sequence[_Block], budget: int) -> Iterator[list[_Block]]:
    """Maximal sets of blocks within the budget, each once.

    Blocks are taken or left from the dearest down. Leaving one only pays if all cheaper ones together can fill the room
    that it would need, so no branch is walked in vain.
    """
    dearest_first = sorted(blocks, key=lambda block: -block.cost)
    remaining = [0] * (len(dearest_first) + 1)
    for index in range(len(dearest_first) - 1, -1, -1):
        remaining[index] = remaining[index + 1] + dearest_first[index].cost
    stack: list[tuple[int, int, int | None, tuple[_Block, ...]]] = [(0, 0, None, ())]
    while stack:
        index, total, least_left, chosen = stack.pop()
        if least_left is not None and total + remaining[index] + least_left <= budget:
            continue
        if index == len(dearest_first):
            if chosen:
                yield sorted(chosen, key=lambda block: block.position)
            continue
        block = dearest_first[index]
        stack.append((index + 1, total, block.cost, chosen))
        if total + block.cost <= budget:
            stack.append((index + 1, total + block.cost, least_left, (*chosen, block)))
