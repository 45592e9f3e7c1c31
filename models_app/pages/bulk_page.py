"""The page of a bulk edit: a line for each model with what changes, and a sentence over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from models_app.pages.model_row import LOOKS
from models_app.plan_figures import PlanFigures
from models_app.services import bulk
from quartermaster_site.figures import UNKNOWN, count, counted, gib

_WORDS = {
    bulk.SAVED: ("ok", "ok"),
    bulk.UNCHANGED: ("", "wait"),
    bulk.REFUSED: ("bad", "bad"),
    bulk.CONFLICT: ("bad", "bad"),
    bulk.UNPLANNED: ("warn", "warn"),
}
"""Outcome -> tone, icon."""
_PREVIEW = {bulk.SAVED: "would change", bulk.UNCHANGED: "stays as it is", bulk.REFUSED: "cannot take it"}
_DONE = {bulk.UNCHANGED: "stayed as it is", bulk.REFUSED: "not changed", bulk.CONFLICT: "changed by others"}


@dataclass(frozen=True, slots=True)
class BulkLine:
    """One model. The figures are before and after; `-` where nothing is planned."""

    served_id: str
    url: str
    tone: str
    icon: str
    word: str
    text: str
    context: str = ""
    memory: str = ""
    verdict: str = ""


def bulk_lines(outcomes: Iterable[bulk.Outcome], *, done: bool) -> list[BulkLine]:
    """`done`: the change is stored, else it is only shown."""
    return [_line(outcome, _DONE if done else _PREVIEW) for outcome in outcomes]


def _line(outcome: bulk.Outcome, words: dict[str, str]) -> BulkLine:
    tone, icon = _WORDS[outcome.word]
    context, memory, verdict = figures_of(outcome.before, outcome.after)
    return BulkLine(
        served_id=outcome.row.served_id,
        url=reverse("models:model-edit", args=[outcome.row.pk]),
        tone=tone,
        icon=icon,
        word=words.get(outcome.word, outcome.word),
        text=outcome.text,
        context=context,
        memory=memory,
        verdict=verdict,
    )


def figures_of(before: PlanFigures | None, after: PlanFigures | None) -> tuple[str, str, str]:
    """Window, memory and verdict, each with what becomes of it."""
    return (
        _both(_context(before), _context(after)),
        _memory(before, after),
        _both(_verdict(before), _verdict(after)),
    )


def bulk_summary(outcomes: Sequence[bulk.Outcome], *, done: bool) -> str:
    """`12 models would change, 3 stay as they are, 1 cannot take it.`"""
    numbers = Counter(outcome.word for outcome in outcomes)
    parts = [f"{counted(numbers[bulk.SAVED], 'model')} {'changed' if done else 'would change'}"]
    if numbers[bulk.UNCHANGED]:
        parts.append(f"{numbers[bulk.UNCHANGED]:,} stay as they are")
    if numbers[bulk.REFUSED]:
        parts.append(f"{numbers[bulk.REFUSED]:,} cannot take it")
    if numbers[bulk.CONFLICT]:
        parts.append(f"{numbers[bulk.CONFLICT]:,} were changed by others meanwhile")
    if numbers[bulk.UNPLANNED]:
        parts.append(f"{numbers[bulk.UNPLANNED]:,} change too but were not planned here, as that takes too long")
    worse = sum(_is_worse(outcome) for outcome in outcomes)
    return f"{', '.join(parts)}." + (f" {counted(worse, 'model')} would no longer fit." if worse else "")


def _is_worse(outcome: bulk.Outcome) -> bool:
    before, after = outcome.before, outcome.after
    return after is not None and after.verdict == "over" and before is not None and before.verdict != "over"


def _both(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _context(plan: PlanFigures | None) -> str:
    return count(plan.ctx_tokens) if plan and plan.ctx_tokens else UNKNOWN


def _memory(before: PlanFigures | None, after: PlanFigures | None) -> str:
    """VRAM where one of the plans takes any; RAM where it changes or is all that there is."""
    judged = [plan if plan and plan.verdict not in ("unplanned", "unknown") else None for plan in (before, after)]
    vram = _both(*(gib(plan.est_vram_bytes) if plan else UNKNOWN for plan in judged))
    ram = _both(*(gib(plan.est_ram_bytes) if plan else UNKNOWN for plan in judged))
    if not any(judged):
        return UNKNOWN
    on_gpu = any(plan and plan.est_vram_bytes for plan in judged)
    parts = [f"VRAM {vram}"] if on_gpu else []
    if not on_gpu or "→" in ram:
        parts.append(f"RAM {ram}")
    return ", ".join(parts)


def _verdict(plan: PlanFigures | None) -> str:
    return LOOKS[plan.verdict][1] if plan and plan.verdict in LOOKS else UNKNOWN
