"""The memory table's figures: every column rounded once so that it adds up, devices so that they sum to all of them."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.catalog import MemoryTerm, Plan
from quartermaster_site.figures import share

PART_ORDER = ("weights", "kv", "compute", "projector", "drafter", "runtime", "headroom", "measured", "checkpoints")


@dataclass(frozen=True, slots=True)
class Column:
    """One place: bytes and steps of 0.01 GiB for every shown term, and the total in steps."""

    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    total: int


def shown_terms(plan: Plan) -> list[MemoryTerm]:
    """Terms that are not zero everywhere, always in the same order."""
    rank = {key: index for index, key in enumerate(PART_ORDER)}
    terms = [term for term in plan.terms if any(term.device_bytes) or term.ram_bytes]
    return sorted(terms, key=lambda term: rank.get(term.key, len(rank)))


def memory_columns(plan: Plan) -> tuple[tuple[Column, ...], Column]:
    """The devices in order, and RAM."""
    terms = shown_terms(plan)
    devices = []
    for index, total in enumerate(device_totals(plan)):
        sizes = tuple(term.device_bytes[index] if index < len(term.device_bytes) else 0 for term in terms)
        devices.append(Column(sizes, tuple(share(sizes, total_steps=total)), total))
    sizes = tuple(term.ram_bytes for term in terms)
    steps = tuple(share(sizes))
    return tuple(devices), Column(sizes, steps, sum(steps))


def device_totals(plan: Plan) -> list[int]:
    """The total of each device, rounded so that they sum to the rounded total of all: for the table and the bars."""
    width = max((len(term.device_bytes) for term in plan.terms), default=0)
    used = [sum(term.device_bytes[i] for term in plan.terms if i < len(term.device_bytes)) for i in range(width)]
    return share(used)
