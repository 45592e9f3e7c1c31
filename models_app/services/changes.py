"""The history of what is pinned: one line a save, and the states between the lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpus_app.models import Host
from models_app.models import Change
from quartermaster_site.access.audit import Actor

Fields = Mapping[str, Any]


def changes_of(before: Fields, after: Fields) -> dict[str, list[Any]]:
    """Key -> [before, after] of what differs."""
    keys = sorted({*before, *after})
    return {key: [before.get(key), after.get(key)] for key in keys if before.get(key) != after.get(key)}


def undone(now: Fields, changes: Iterable[Change]) -> dict[str, Any]:
    """The fields before these changes, the newest of which comes first."""
    state = dict(now)
    for change in changes:
        state |= {key: before for key, (before, _) in change.changes.items()}
    return {key: value for key, value in state.items() if value is not None}


def add_change(
    *,
    host: Host,
    actor: Actor,
    action: str,
    before: Fields,
    after: Fields,
    version: int,
    match: str = "",
    quant: str = "",
    variant: str = "",
    rule: int = 0,
) -> dict[str, list[Any]]:
    """Store one line; its changed fields. Without a match it is about a variant that the models of a host share."""
    changes = changes_of(before, after)
    Change.objects.create(
        host=host,
        match=match,
        quant=quant,
        variant=variant,
        rule=rule,
        action=action,
        changes=changes,
        after=dict(after),
        version=version,
        by=actor.user,
        actor=actor.name[:150],
    )
    return changes
