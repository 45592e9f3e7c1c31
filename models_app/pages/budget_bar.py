"""What planning may use of a host against what its largest plan takes: VRAM of all devices, and RAM."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from gpus_app.memory_settings import DEFAULT_OVERHEAD_GIB, SECTION
from gpus_app.models import Host
from gpus_app.selectors import host_budget, idle_devices, section
from models_app.selectors.fleet import LargestPlan, LargestPlans
from quartermaster_site.drawings import MemoryBar, Part, Track, memory_bar
from quartermaster_site.figures import GIB, UNKNOWN, counted, gib


@dataclass(frozen=True, slots=True)
class BudgetFigure:
    """One figure of the table beside the drawing, in GiB where it is a size."""

    label: str
    text: str
    note: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class BudgetBar:
    bar: MemoryBar | None
    figures: tuple[BudgetFigure, ...]


def budget_bar(host: Host, largest: LargestPlans) -> BudgetBar:
    """`host` with its devices and settings at hand."""
    budget, devices = host_budget(host), idle_devices(host)
    headroom = headroom_bytes(host) * len(budget.device_bytes)
    total = sum(budget.capacity_bytes) or budget.target_bytes
    tracks = []
    if budget.device_bytes:
        where = counted(len(devices), "GPU") if len(devices) else "set by hand"
        tracks.append(_vram_track(where, largest.vram, headroom, total, budget.target_bytes))
    if budget.ram_bytes or host.ram_total_bytes:
        used = Part("weights", "most RAM of a plan", "most RAM", largest.ram.size_bytes)
        note = f"{gib(largest.ram.size_bytes)} of {gib(budget.ram_bytes)}"
        tracks.append(Track("RAM", note, (used,), host.ram_total_bytes or budget.ram_bytes, budget.ram_bytes))
    words = " ".join(f"{track.name}: {track.note} GiB." for track in tracks)
    return BudgetBar(
        bar=memory_bar(tracks, f"Largest plan against the budget of {host.name}. {words}"),
        figures=(
            BudgetFigure("VRAM", gib(total) if total else UNKNOWN),
            BudgetFigure("VRAM target", gib(budget.target_bytes) if budget.target_bytes else "none: CPU only"),
            BudgetFigure("Headroom", gib(headroom) if headroom else UNKNOWN),
            _figure("Largest plan", largest.vram),
            BudgetFigure("RAM limit", gib(budget.ram_bytes) if budget.ram_bytes else "none"),
            _figure("Most RAM", largest.ram),
        ),
    )


def headroom_bytes(host: Host) -> int:
    """What every plan keeps free on each device."""
    return int(section(host, SECTION).values.get("vramOverheadGB", DEFAULT_OVERHEAD_GIB) * GIB)


def _vram_track(where: str, largest: LargestPlan, headroom: int, total: int, target: int) -> Track:
    kept = min(headroom, largest.size_bytes) if largest.keeps_headroom else 0
    parts = (
        Part("weights", "largest plan", "largest plan", largest.size_bytes - kept),
        Part("headroom", "its headroom", "", kept),
    )
    return Track(f"VRAM · {where}", f"{gib(largest.size_bytes)} of {gib(target)}", parts, total, target)


def _figure(label: str, plan: LargestPlan) -> BudgetFigure:
    if not plan.size_bytes:
        return BudgetFigure(label, UNKNOWN)
    return BudgetFigure(label, gib(plan.size_bytes), plan.profile_id, reverse("models:model-show", args=[plan.row_id]))
