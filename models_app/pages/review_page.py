"""The side of the review page: may this text be written, by whom, after which question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpus_app.models import Host
from models_app.core.export.findings import BLOCK, CONFIRM, CheckFinding
from models_app.core.export.revisions.mass_change import MassChange
from models_app.models import Publishing, Revision
from models_app.pages.config_page import ConfigView
from models_app.selectors.comparing import Comparison
from models_app.services.publishing import may_approve
from models_app.services.seen_changes import unseen_text
from quartermaster_site.access.permissions import Level, may
from quartermaster_site.figures import counted
from quartermaster_site.jobs.models import Job


@dataclass(frozen=True, slots=True)
class ReviewSide:
    """`action` is write, submit, approve, or empty where this person can do nothing; then `held` says why."""

    tone: str
    headline: str
    details: str
    is_live: bool
    action: str
    button: str
    held: str
    mass: str
    asks_slug: bool
    pinned: int
    """The revision to which the host is pinned, where this text would lift the pin; 0 else."""
    may_send_back: bool
    to_confirm: str = ""
    """What has to be ticked first (V-08)."""


def review_side(
    *,
    host: Host,
    comparison: Comparison,
    unseen: int = 0,
    config: ConfigView,
    publishing: Publishing,
    user: Any,
    found: Sequence[CheckFinding] = (),
    shown: Callable[[str], str],
) -> ReviewSide:
    """`found` is what the host says against writing it now; `unseen` are the changes that the person does not see, and
    `shown` gives what stands in place of a text that names what is hidden.
    """
    revision, live, mass = comparison.after, comparison.before, comparison.mass
    same = live is not None and live.body_sha256 == revision.body_sha256
    pinned = publishing.pinned.number if publishing.pinned and publishing.pinned_id != revision.pk else 0
    action, held = _action(host, revision, live, publishing, user, holds=mass.holds)
    if action and unseen:
        action, held = "", f"{unseen_text(unseen)}: somebody who sees all of this host can have it written."
    if action and (blocked := _blocked(found)):
        action, held = "", shown(blocked)
    tone, headline = _verdict(revision, config, same=same, holds=mass.holds)
    return ReviewSide(
        tone=tone,
        headline=headline,
        details=_on_top_of(revision, live),
        is_live=same,
        action=action,
        button="Write it again" if same and action == "write" else _button(action, host, revision),
        held=held,
        mass=mass_text(mass, told=not config.withheld) if mass.holds else "",
        asks_slug=mass.holds and action in ("write", "approve"),
        pinned=pinned,
        may_send_back=revision.state == Revision.State.AWAITING and may(user, Level.OPERATE, host),
        to_confirm=_to_confirm(found) if action else "",
    )


def _blocked(found: Sequence[CheckFinding]) -> str:
    """What has to be settled first; a file of others is asked about with the write itself."""
    first = next((item for item in found if item.severity == BLOCK and item.rule != "V-13"), None)
    return f"{first.rule}: {first.message}." if first else ""


def _to_confirm(found: Sequence[CheckFinding]) -> str:
    return next((f"{item.rule}: {item.message}" for item in found if item.severity == CONFIRM), "")


def foreign_text(refused: Job | None, found: Sequence[CheckFinding]) -> str:
    """Why a person has to say that the file there may be replaced; "" where nobody has to."""
    if refused is not None:
        return refused.error
    return next((f"{item.message}." for item in found if item.rule == "V-13"), "")


def _on_top_of(revision: Revision, live: Revision | None) -> str:
    if live is None:
        return f"revision {revision.number}; nothing of Quartermaster's is live"
    if live.body_sha256 == revision.body_sha256:
        return f"written as revision {live.number}"
    return f"revision {revision.number}, on top of {live.number}"


def _verdict(revision: Revision, config: ConfigView, *, same: bool, holds: bool) -> tuple[str, str]:
    if same:
        return "ok", "Nothing to write: this text is live"
    if revision.state == Revision.State.AWAITING and config.tone != "bad":
        return "warn", "Waits for a second person"
    if holds and config.tone != "bad":
        return "warn", "To be confirmed by an administrator"
    return config.tone, config.headline


def _action(
    host: Host, revision: Revision, live: Revision | None, publishing: Publishing, user: Any, *, holds: bool
) -> tuple[str, str]:
    """What this person can do now, or why nothing."""
    if not host.publish_path:
        return "", "No path is set for the file; an administrator sets it on the config page."
    if revision.state == Revision.State.BLOCKED:
        return "", "Findings block it."
    if not may(user, Level.OPERATE, host):
        return "", "Writing a file on the host needs the role operator."
    is_live = live is not None and live.pk == revision.pk
    approval = publishing.policy == Publishing.Policy.APPROVAL and not is_live
    if approval and revision.state != Revision.State.AWAITING:
        return "submit", ""
    if approval and not may_approve(revision, user):
        return "", "You submitted it: somebody else has to approve it."
    if holds and not may(user, Level.MANAGE):
        return "", "An administrator can have it written: it drops many models, or a folder is away."
    return ("approve" if approval else "write"), ""


def _button(action: str, host: Host, revision: Revision) -> str:
    return {
        "write": f"Write revision {revision.number} to {host.name}",
        "approve": f"Approve and write to {host.name}",
        "submit": "Submit for approval",
    }.get(action, "")


def mass_text(mass: MassChange, *, told: bool = True) -> str:
    """V-18 in words; it names the folders. Not `told`: without the numbers, which count hidden models."""
    parts = []
    if mass.drops_many and not told:
        parts.append("This text drops many of the models that are live.")
    elif mass.drops_many:
        parts.append(f"This text drops {mass.dropped:,} of {counted(mass.live, 'model')} that are live.")
    if mass.roots:
        more = f" and {len(mass.roots) - 3} more" if len(mass.roots) > 3 else ""
        parts.append(f"Not read, or not completely: {', '.join(mass.roots[:3])}{more}.")
    return " ".join(parts)
