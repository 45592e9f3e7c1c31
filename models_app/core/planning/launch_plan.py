"""From wishes and a budget to one planned launch: search, memory terms, verdict, reasons.

The terms add up to the estimate exactly, per device and in RAM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from models_app.core.catalog import Header, MemoryTerm
from models_app.core.planning.question import Answer, Room, nothing
from models_app.core.planning.search import search
from models_app.core.planning.side_memory import BakedHead
from models_app.core.planning.table import ModelTable
from models_app.core.planning.terms import CONVERTING, memory_terms
from models_app.core.planning.wishes import Wishes, beside_bytes, checkpoint_ram_bytes

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


def room_of(header: Header, table: ModelTable, wishes: Wishes) -> Room:
    """What is left for llama.cpp's own allocations."""
    budget, companions = wishes.budget, wishes.companions
    devices = budget.device_bytes
    beside = beside_bytes(companions)
    ram = checkpoint_ram_bytes(table, wishes)
    ram += companions.projector.total_bytes if companions.projector and companions.projector.in_ram else 0
    ram += wishes.excess.ram_bytes + (0 if devices else beside)
    free = budget.runtime_bytes + wishes.headroom_bytes + wishes.excess.device_bytes
    rooms = [max(0, size - free) for size in devices]
    if rooms:
        rooms[-1] = max(0, rooms[-1] - beside)
    head = baked_head(header, table, wishes)
    return Room(
        device_bytes=tuple(rooms),
        ram_bytes=max(0, budget.ram_bytes - ram) if budget.ram_bytes else None,
        growing=head.bytes_at if head else nothing,
        cuda=budget.runtime in CONVERTING,
        compute_factor=wishes.compute_factor if 0 < wishes.compute_factor < math.inf else 1.0,
    )


def baked_head(header: Header, table: ModelTable, wishes: Wishes) -> BakedHead | None:
    """The draft context on the model's own draft blocks, where the launch opens one."""
    companions = wishes.companions
    if not companions.baked_head:
        return None
    return BakedHead(table, header, wishes.question, companions.draft_k, companions.draft_v)


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
