"""The validation rules about memory (web.md 11.4): V-10 for each model, V-11 for those that are always loaded.

Pure: an outline of the file, what planning noted beside its entries, and the budget that it was planned for. One line
tells of all models with the same trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models_app.core.catalog import Plan
from models_app.core.export.findings import WARN, CheckFinding, finding
from models_app.core.export.residents import residents
from models_app.core.export.revisions.outline import Outline
from models_app.core.planning.launch_plan import OVER, SPILLS, UNKNOWN

SHORT = "short"
"""The window is below the configured minimum, because no longer one fits."""
_LIMITED = frozenset({"ctx-limited-by-vram", "ctx-limited-by-ram"})
_NO_ESTIMATE = frozenset({"sam", "tts", "asr"})
"""Classes of small helpers whose entries say on purpose nothing of memory."""
FIRST_NAMED = 3
_ROUNDING_GIB = 0.01
"""Estimates in a file are rounded to hundredths."""


@dataclass(frozen=True, slots=True)
class BudgetFigures:
    """What a text was planned for, in GiB; 0 means no limit. `devices` are by the names that its commands use."""

    vram_gib: float = 0.0
    ram_gib: float = 0.0
    devices: Mapping[str, float] = field(default_factory=dict)


def figures_from_json(data: Mapping[str, Any]) -> BudgetFigures:
    """What `dataclasses.asdict` gave; a text from before these were kept has none."""
    return BudgetFigures(**data)


def plan_concerns(plan: Plan, least_tokens: int) -> tuple[str, ...]:
    """What V-10 has to say of a plan: `over`, `spills`, `unknown` or `short`. A window that somebody pinned is not."""
    if plan.verdict in (OVER, UNKNOWN):
        return (plan.verdict,)
    spills = (SPILLS,) if plan.verdict == SPILLS else ()
    tokens = plan.placement.ctx_tokens if plan.placement else 0
    is_short = 0 < tokens < least_tokens and any(reason.kind in _LIMITED for reason in plan.reasons)
    return (*spills, SHORT) if is_short else spills


def plan_findings(
    outline: Outline,
    entries: Sequence[Mapping[str, Any]],
    sees: Callable[[str, str], bool] = lambda name, path: True,
) -> Iterator[CheckFinding]:
    """V-10: one finding for each kind of trouble, about the models that a person sees."""
    troubled: dict[str, list[str]] = {OVER: [], UNKNOWN: [], SHORT: [], SPILLS: []}
    planned = {str(item.get("id")): item for item in entries}
    for name, model in outline.models.items():
        item = planned.get(name, {})
        concerns = item.get("concerns") or _unestimated(item, model.vram_gb, model.ram_gb)
        if concerns and sees(name, model.path):
            for concern in concerns:
                troubled.get(concern, []).append(name)
    admitted = ", without which its router admits no model under a budget" if "vramBudgetGB" in outline.top else ""
    texts = {
        OVER: ("does not fit the budget", "do not fit the budget"),
        UNKNOWN: (f"has no estimate{admitted}", f"have no estimate{admitted}"),
        SHORT: ("has a window below the configured minimum", "have a window below the configured minimum"),
        SPILLS: ("lies partly in RAM and is slower", "lie partly in RAM and are slower"),
    }
    for concern, names in troubled.items():
        if names:
            one, many = texts[concern]
            text = f"{_counted(names)} {one if len(names) == 1 else many}: {first_of(names)}"
            yield finding("V-10", WARN, ("models", names[0]), 0, text)


def _unestimated(item: Mapping[str, Any], vram_gb: float | None, ram_gb: float | None) -> tuple[str, ...]:
    """Entries by hand have no plan; one without figures is not known."""
    return () if vram_gb or ram_gb or not item or item.get("class") in _NO_ESTIMATE else (UNKNOWN,)


def resident_findings(
    outline: Outline,
    entries: Sequence[Mapping[str, Any]],
    budget: BudgetFigures,
    sees: Callable[[str, str], bool] = lambda name, path: True,
) -> Iterator[CheckFinding]:
    """V-11: what is always loaded needs more than there is, in sum or on one device. One model alone is V-10's."""
    found = ((name, outline.models[name]) for name in residents(outline))
    names = [name for name, model in found if (model.vram_gb or model.ram_gb) and sees(name, model.path)]
    if len(names) < 2:
        return
    shares = {str(item.get("id")): item.get("est_device_gib", {}) for item in entries}
    needs = [("of VRAM", sum(outline.models[name].vram_gb or 0.0 for name in names), budget.vram_gib)]
    needs += [
        (f"on {device}", sum(shares.get(name, {}).get(device, 0.0) for name in names), gib)
        for device, gib in budget.devices.items()
    ]
    needs.append(("of RAM", sum(outline.models[name].ram_gb or 0.0 for name in names), budget.ram_gib))
    over = [
        f"{need:,.1f} GiB {where}, where {gib:,.1f} are planned"
        for where, need, gib in needs
        if 0 < gib < need - _ROUNDING_GIB * len(names)
    ]
    if over:
        text = f"{_counted(names)} are always loaded and need together {'; '.join(over)}: {first_of(names)}"
        yield finding("V-11", WARN, ("models", names[0]), 0, text)


def first_of(names: Sequence[str], most: int = FIRST_NAMED) -> str:
    """`a, b, c and 9 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _counted(names: Sequence[str]) -> str:
    return f"{len(names):,} model{'' if len(names) == 1 else 's'}"
