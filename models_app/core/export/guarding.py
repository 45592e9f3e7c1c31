"""Which entries llama-swap starts through the spawn guard, and with what options (sizing.md 16.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from models_app.core.catalog import Plan
from models_app.core.export.document import Entry
from models_app.core.launch.tokens import POSIX, WINDOWS, join_tokens
from models_app.core.settings import Override, Settings
from models_app.core.spawn_guard.options import GuardOptions, guard_words
from models_app.core.units import GIB

MAX_VRAM = "--max-vram"
KEPT_FREE = frozenset({"headroom", "measured"})
"""Memory terms of a plan that no launch may take."""
ON = "on"
_ROUNDING = 1e-6
"""Figures are rounded in favour of the plan: one that fills its target must fit into the figure that is written."""


class GuardPlace(Protocol):
    """What of the export's options concerns the guard."""

    @property
    def guard_program(self) -> str: ...
    @property
    def header_cache(self) -> str: ...


def guard_of(plan: Plan, settings: Settings, override: Override) -> GuardOptions | None:
    """The options of a plan's guard; None where it is switched off, or would have nothing to look at."""
    wanted = override.spawn_guard == ON if override.spawn_guard else settings.spawn_guard
    if not wanted or not _can_change(plan):
        return None
    return GuardOptions(
        target_gb=math.ceil(plan.target_bytes / GIB * 100 - _ROUNDING) / 100,
        min_gpu_fraction=max(0.0, settings.min_gpu_fraction),
        reserve_gb=_reserve_gb(plan, settings),
        compute_factor=settings.compute_buf_factor if 0 < settings.compute_buf_factor < math.inf else 1.0,
        min_device_gb=settings.min_gpu_vram_gb,
        shared_memory=settings.shared_memory,
        pool_integrated=settings.pool_integrated_gpu,
        multi_gpu=settings.multi_gpu,
    )


def _can_change(plan: Plan) -> bool:
    """A chat model with layers on a GPU, or a server with a cap of its own."""
    on_gpu = plan.model_class == "llm" and plan.placement is not None and plan.placement.gpu_layers > 0
    return on_gpu or any(word.partition("=")[0] == MAX_VRAM for word in plan.argv)


def _reserve_gb(plan: Plan, settings: Settings) -> float:
    """What the plan keeps free on each device, so that the guard counts as planning did."""
    kept = [term.device_bytes for term in plan.terms if term.key in KEPT_FREE and term.device_bytes]
    most = max((sum(sizes) for sizes in zip(*kept, strict=True)), default=0) / GIB
    return math.floor(most * 1000 + _ROUNDING) / 1000 if kept else max(0.0, settings.vram_overhead_gb)


def guard_line(entry: Entry, place: GuardPlace, rules: str = POSIX) -> list[str]:
    """The line in front of a command, none without a guard."""
    if entry.guard is None or not place.guard_program or rules == WINDOWS:
        return []
    return [join_tokens(guard_words(place.guard_program, replace(entry.guard, header_cache=place.header_cache)), rules)]


def guard_notes(entries: Sequence[Entry], place: GuardPlace, rules: str = POSIX) -> list[str]:
    """Why entries that should have a guard have none."""
    wanted = sum(entry.guard is not None for entry in entries)
    if not wanted or (place.guard_program and rules != WINDOWS):
        return []
    many = f"{wanted} model{'s' if wanted > 1 else ''}"
    if rules == WINDOWS:
        return [f"NOTE: no spawn guard for {many}: a program on Windows cannot become another one"]
    return [
        f"WARNING: no spawn guard for {many}: where quartermaster-spawn lies on this host is not known; its next scan"
        " says so"
    ]
