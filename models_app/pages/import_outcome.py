"""What became of an import: what was written, and whether the text that is planned now means the same as the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models_app.core.errors import ExportError
from models_app.core.imports.meaning import THERE, differences, meaning_of
from models_app.models import ImportBatch, Revision
from models_app.pages.import_words import shown
from models_app.selectors.sight import IN_PARTS
from models_app.services.arguments import rules_of
from models_app.services.import_config import without_secrets
from models_app.services.import_sight import ImportSight
from models_app.services.import_undoing import changed_since
from quartermaster_site.figures import counted
from quartermaster_site.jobs.selectors import unfinished_job

MOST_DIFFERENCES = 60


@dataclass(frozen=True, slots=True)
class Difference:
    place: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """`compared` says that there is a text to compare with; `planning` that a newer one is on its way."""

    rows: str
    may_undo: bool
    changed: tuple[str, ...]
    planning: bool
    compared: bool
    why_not: str
    revision: int
    found: tuple[Difference, ...]
    more: int


def outcome_view(batch: ImportBatch, sight: ImportSight) -> Outcome:
    """For a person, who sees the comparison where nothing of the host is hidden from them."""
    applied = batch.state == ImportBatch.State.APPLIED
    names = changed_since(batch) if applied else []
    changed = tuple(name for name in names if not sight.hides_text(name))
    revision = Revision.objects.filter(host=batch.host).order_by("-number").first()
    why_not = _why_not(batch, revision) if sight.sight.whole else IN_PARTS
    found = _differences(batch, revision) if revision is not None and applied and not why_not else []
    return Outcome(
        rows=counted(len(sight.seen_targets()), "row"),
        may_undo=applied and not names and sight.may_undo,
        changed=changed,
        planning=unfinished_job("plan_host", batch.host) is not None,
        compared=applied and not why_not,
        why_not=why_not,
        revision=revision.number if revision else 0,
        found=tuple(Difference(*item) for item in found[:MOST_DIFFERENCES]),
        more=max(0, len(found) - MOST_DIFFERENCES),
    )


def _why_not(batch: ImportBatch, revision: Revision | None) -> str:
    """Why file and text cannot be compared, "" where they can."""
    if not batch.report.get("meaning"):
        return "This kind of file has no text to compare with."
    if revision is None:
        return "Nothing is planned for this host yet."
    if revision.dialect != batch.dialect:
        return (
            f"The file is for {batch.get_dialect_display()}, and this host writes one for"
            f" {revision.get_dialect_display()}: set the dialect on the Config page to compare them."
        )
    return ""


def _differences(batch: ImportBatch, revision: Revision) -> list[tuple[str, str, str]]:
    try:
        now = without_secrets(meaning_of(revision.text.encode(), batch.dialect, rules_of(batch.host)))
    except ExportError:
        return []
    found: list[tuple[str, Any, Any]] = differences(batch.report["meaning"], now)
    return [*_whole_models(found), *(_told(*item) for item in found if not _is_whole(item))]


def _is_whole(item: tuple[str, Any, Any]) -> bool:
    """A model that is in one of the two alone."""
    return item[0].startswith("models.") and None in item[1:] and THERE in item[1:]


def _whole_models(found: list[tuple[str, Any, Any]]) -> list[tuple[str, str, str]]:
    names = [
        (place.removeprefix("models."), before) for place, before, after in found if _is_whole((place, before, after))
    ]
    gone, new = (shown(", ".join(name for name, before in names if bool(before) is was)) for was in (True, False))
    lines = (("models only in the file", gone, ""), ("models only planned", "", new))
    return [line for line in lines if line[1] or line[2]]


def _told(place: str, before: Any, after: Any) -> tuple[str, str, str]:
    return place, _words(before), _words(after)


def _words(value: Any) -> str:
    """A command as one text, other values as they are shown elsewhere."""
    is_command = isinstance(value, list) and len(value) > 1 and all(isinstance(word, str) for word in value)
    return shown(" ".join(value) if is_command else value)
