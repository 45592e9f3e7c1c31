"""From wishes and a budget to one planned launch: search, memory terms, verdict, reasons.

The terms add up to the estimate exactly, per device and in RAM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from models_app.core.catalog import Header, MemoryTerm
from models_app.core.planning.question import Answer, Room
from models_app.core.planning.room import baked_head, room_of
from models_app.core.planning.search import search
from models_app.core.planning.table import ModelTable
from models_app.core.planning.terms import memory_terms
from models_app.core.planning.wishes import Wishes

FITS = "fits"
SPILLS = "spills"
OVER = "over"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """One launch with its price. `device_bytes` are the totals per device, `ram_bytes` that of the host."""

    wishes: Wishes
    """As planned: without devices where everything had to stay in RAM."""
    answer: Answer
    terms: tuple[MemoryTerm, ...]
    verdict: str
    fell_back: bool
    """There are devices, but not one layer fits on them."""
    room: Room

    @property
    def device_bytes(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(*(term.device_bytes for term in self.terms), strict=True)))

    @property
    def est_vram_bytes(self) -> int:
        return sum(self.device_bytes)

    @property
    def est_ram_bytes(self) -> int:
        return sum(term.ram_bytes for term in self.terms)

    @property
    def on_cpu(self) -> bool:
        """The launch must not see a GPU."""
        return not self.wishes.budget.device_bytes


def plan_launch(header: Header, table: ModelTable, wishes: Wishes) -> PlannedLaunch:
    """The plan. A launch of which no layer fits on a device is planned for RAM, unless layers are pinned."""
    room = room_of(header, table, wishes)
    answer = search(table, wishes.question, room)
    fell_back = bool(room.device_bytes) and answer.step.gpu_layers == 0 and wishes.question.gpu_layers is None
    if fell_back:
        wishes = replace(wishes, budget=wishes.budget.without_devices())
        room = room_of(header, table, wishes)
        answer = search(table, wishes.question, room)
    terms = memory_terms(table, wishes, answer, baked_head(header, table, wishes))
    planned = PlannedLaunch(wishes, answer, terms, UNKNOWN, fell_back, room)
    return replace(planned, verdict=_verdict(table, planned))


def _verdict(table: ModelTable, planned: PlannedLaunch) -> str:
    answer, budget = planned.answer, planned.wishes.budget
    if table.missing or table.file_size_bytes == 0 or planned.wishes.unjudged:
        return UNKNOWN
    over_device = any(held > most for held, most in zip(planned.device_bytes, budget.device_bytes, strict=True))
    if not answer.fits or over_device or 0 < budget.ram_bytes < planned.est_ram_bytes:
        return OVER
    whole = answer.step.gpu_layers > table.blocks and answer.step.cpu_moe_layers == 0
    everything = whole and not answer.placement.kv_in_ram
    return FITS if everything or (planned.on_cpu and not planned.fell_back) else SPILLS
