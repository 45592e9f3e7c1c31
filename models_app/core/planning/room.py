"""What a budget leaves for llama.cpp's own allocations once everything that lies beside them is taken away."""

from __future__ import annotations

import math

from models_app.core.catalog import Header
from models_app.core.planning.question import Room, nothing
from models_app.core.planning.side_memory import BakedHead
from models_app.core.planning.table import ModelTable
from models_app.core.planning.wishes import Wishes, beside_bytes, checkpoint_ram_bytes

CONVERTING = ("cuda", "rocm")
"""Runtimes whose devices convert quantised caches and copy host weights in (compute-buffer.md 6)."""


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
        ranks=budget.ranks,
    )


def baked_head(header: Header, table: ModelTable, wishes: Wishes) -> BakedHead | None:
    """The draft context on the model's own draft blocks, where the launch opens one."""
    companions = wishes.companions
    if not companions.baked_head:
        return None
    return BakedHead(table, header, wishes.question, companions.draft_k, companions.draft_v)
