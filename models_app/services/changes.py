"""The history of what is pinned: one line a save, and the states between the lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


def of_variant(changes: Iterable[Change], name: str) -> Iterator[Change]:
    """Those of the variant that is called `name` now, through its renames back to where it was added.

    `changes` are those of a model, the newest first; what a deleted variant of that name left is not among them.
    """
    known_as = name.lower()
    for change in changes:
        if change.variant.lower() != known_as:
            continue
        if change.action == "delete":
            return
        yield change
        if change.action == "add":
            return
        if change.action == "rename":
            known_as = str(change.changes["name"][0]).lower()


def name_after(change: Change, later: Iterable[Change]) -> str:
    """What the variant of a change is called after later changes of its model, the oldest first.

    A deleted one has the name of the change: that is what comes back.
    """
    name = change.variant
    for other in later:
        if other.action == "rename" and str(other.changes["name"][0]).lower() == name.lower():
            name = other.variant
        elif other.action == "delete" and other.variant.lower() == name.lower():
            return change.variant
    return name


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
