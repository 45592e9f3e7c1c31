"""The texts of a host as a list: number, state, when, who, message, what changed in counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from models_app.models import Publishing, Revision
from models_app.selectors.entry_sight import EntrySight
from models_app.services.adopting import Adopted
from quartermaster_site.figures import counted

STATES = {
    Revision.State.RENDERED: ("", "rendered", "idle"),
    Revision.State.VALIDATED: ("", "ready", "idle"),
    Revision.State.BLOCKED: ("bad", "blocked", "bad"),
    Revision.State.AWAITING: ("warn", "awaits approval", "wait"),
    Revision.State.WRITING: ("act", "writing", "run"),
    Revision.State.WRITTEN: ("ok", "live", "ok"),
    Revision.State.FAILED: ("bad", "not written", "bad"),
    Revision.State.SUPERSEDED: ("", "was live", "dash"),
}
"""State -> tone, word, icon."""
POLICIES = {
    "manual": "A person writes each text.",
    "auto": "After planning, when no finding speaks against it and few models are dropped.",
    "approval": "A person submits it, a second one approves it.",
}


@dataclass(frozen=True, slots=True)
class RevisionLine:
    number: int
    tone: str
    word: str
    shape: str
    reason: str
    at: datetime
    who: str
    message: str
    entries: str
    origin: str
    may_return: bool
    is_pinned: bool


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    slug: str
    label: str
    text: str
    on: bool


def revision_lines(
    revisions: Iterable[Revision], live: Revision | None, publishing: Publishing, sight: EntrySight
) -> list[RevisionLine]:
    """`revisions` carry their `entry_count`; `live` is what is on the host now."""
    return [_line(revision, live, publishing, sight) for revision in revisions]


def _line(revision: Revision, live: Revision | None, publishing: Publishing, sight: EntrySight) -> RevisionLine:
    tone, word, shape = STATES[Revision.State(revision.state)]
    is_live = live is not None and revision.pk == live.pk
    if revision.state == Revision.State.WRITTEN and not is_live:
        tone, word, shape = "", "was written to another path", "dash"
    origin = f"rollback to {revision.restores}" if revision.restores else ""
    if revision.approved_by:
        origin = f"{origin}, " if origin else origin
        origin += f"approved by {revision.approved_by.get_username()}"
    return RevisionLine(
        number=revision.number,
        tone=tone,
        word=word,
        shape=shape,
        reason=sight.shown(revision.state_reason),
        at=revision.written_at or revision.created_at,
        who=_who(revision),
        message=sight.shown(revision.message),
        entries=counted(revision.entry_count, "entry", "entries") if sight.whole else "",  # type: ignore[attr-defined]
        origin=origin,
        may_return=_may_return(revision, live),
        is_pinned=publishing.pinned_id == revision.pk,
    )


def _who(revision: Revision) -> str:
    """Who had it written, else submitted, else planned it."""
    person = (revision.submitted_by if revision.state == Revision.State.AWAITING else None) or revision.author
    return person.get_username() if person else "by itself"


def _may_return(revision: Revision, live: Revision | None) -> bool:
    return revision.written_at is not None and (live is None or live.body_sha256 != revision.body_sha256)


def policy_choices(publishing: Publishing) -> list[PolicyChoice]:
    return [
        PolicyChoice(slug, label, POLICIES[slug], slug == publishing.policy)
        for slug, label in Publishing.Policy.choices
    ]


def adopted_text(adopted: Adopted, number: int) -> str:
    """What was brought back, as one sentence."""
    parts = [f"settings: {', '.join(adopted.sections)}"] if adopted.sections else []
    if adopted.models:
        parts.append(counted(adopted.models, "model"))
    if not parts:
        return f"Everything is set as it was for revision {number}."
    return f"Set back to what revision {number} was made from: {'; '.join(parts)}. A new text is planned."
