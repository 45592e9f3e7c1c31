"""The Drift page in words: what lies at the path, since when, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpus_app.models import Host
from models_app.core.export.drift import Case
from models_app.models import TargetWatch
from models_app.selectors.drift import Drifted
from quartermaster_site.figures import size

STRIP_WORDS: Mapping[str, str] = {
    Case.EDITED: "edited by hand",
    Case.REPLACED: "replaced",
    Case.REMOVED: "file removed",
    Case.UNREADABLE: "file unreadable",
    Case.RESTORED: "older text there",
}
BY_HAND = "managed by hand"
_HEADLINES: Mapping[str, str] = {
    Case.EDITED: "The file was edited by hand",
    Case.REPLACED: "The file was replaced by something that Quartermaster did not write",
    Case.REMOVED: "The file was removed",
    Case.UNREADABLE: "The file cannot be read",
    Case.RESTORED: "An older text of Quartermaster was put back",
}


@dataclass(frozen=True, slots=True)
class DriftView:
    """`may_keep`: the live text can be written again; `held` says why not. `is_quiet`: somebody asked for silence."""

    tone: str
    headline: str
    details: str
    facts: tuple[tuple[str, str], ...]
    may_keep: bool
    held: str
    older: int
    older_sha256: str
    finding: str
    is_quiet: bool
    may_take: bool
    """What lies there is kept here and can be brought in."""


def drift_view(host: Host, drifted: Drifted) -> DriftView:
    watch, live = drifted.watch, drifted.live
    held = _held(drifted)
    return DriftView(
        tone=_tone(watch),
        headline=_headline(host, drifted),
        details=f"against revision {live.number}" if watch.has_drifted and live else "",
        facts=_facts(watch),
        may_keep=watch.has_drifted and not held,
        held=held,
        older=drifted.older.number if drifted.older else 0,
        older_sha256=watch.sha256 if drifted.older else "",
        finding=watch.finding,
        is_quiet=watch.has_drifted and watch.later == watch.finding,
        may_take=watch.has_drifted and drifted.version is not None,
    )


def _tone(watch: TargetWatch) -> str:
    if watch.has_drifted:
        return "warn" if watch.is_by_hand else "bad"
    return "ok" if watch.looked_at else ""


def _headline(host: Host, drifted: Drifted) -> str:
    watch = drifted.watch
    if not host.publish_path:
        return "No path is set for the file"
    if watch.looked_at is None:
        return "Nobody has looked at the file yet"
    if watch.has_drifted:
        return _HEADLINES[Case(watch.case)]
    if drifted.live is None:
        return "Nothing of Quartermaster's is there yet"
    return f"The file matches revision {drifted.live.number}"


def _facts(watch: TargetWatch) -> tuple[tuple[str, str], ...]:
    """What a host reported of the file, as label and text."""
    rows: list[tuple[str, Any]] = [("Problem", watch.problem)]
    if watch.sha256:
        rows.append(("Size", size(watch.size_bytes)))
        rows.append(("Changed", f"{watch.modified_at:%Y-%m-%d %H:%M:%S} UTC" if watch.modified_at else ""))
        rows.append(("Header", "of Quartermaster" if watch.has_header else "none of Quartermaster"))
        rows.append(("SHA-256", watch.sha256[:16]))
    return tuple((label, text) for label, text in rows if text)


def _held(drifted: Drifted) -> str:
    watch = drifted.watch
    if watch.has_drifted and drifted.live is None:
        return "The text that was written last is not kept any more: set the path again and write the newest one."
    if watch.case == Case.UNREADABLE:
        return "Its content could not be kept: give the worker the right to read it first."
    if watch.case in (Case.EDITED, Case.REPLACED) and drifted.version is None:
        return "Its content is not kept here yet: the next look brings it."
    return ""
