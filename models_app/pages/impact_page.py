"""What would change, in a sentence and a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.pages.bulk_page import figures_of
from models_app.services.impact import Impact
from quartermaster_site.figures import counted


@dataclass(frozen=True, slots=True)
class ImpactLine:
    pk: int
    served_id: str
    context: str
    memory: str
    verdict: str


@dataclass(frozen=True, slots=True)
class ImpactText:
    """`cut` says what was not reached, "" where everything was."""

    tone: str
    text: str
    cut: str
    lines: Sequence[ImpactLine]


def impact_text(impact: Impact) -> ImpactText:
    """`7 of 35 plans would change. 2 models would no longer fit.`"""
    if not impact.total:
        return ImpactText(tone="ok", text="No plan would change.", cut="", lines=())
    parts = [f"{impact.changed:,} of {counted(impact.planned, 'plan')} would change."]
    if impact.stop_fitting:
        parts.append(f"{counted(impact.stop_fitting, 'model')} would no longer fit.")
    if impact.start_fitting:
        parts.append(f"{counted(impact.start_fitting, 'model')} would fit that {_does(impact.start_fitting)} not now.")
    left = impact.total - impact.planned
    return ImpactText(
        tone="bad" if impact.stop_fitting else "ok",
        text=" ".join(parts),
        cut=f"{counted(left, 'model')} more were not planned here, as that takes too long." if left else "",
        lines=[ImpactLine(item.pk, item.served_id, *figures_of(item.before, item.after)) for item in impact.largest],
    )


def _does(number: int) -> str:
    return "does" if number == 1 else "do"
