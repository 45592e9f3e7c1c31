"""The list of networks as it is stored: read once per version and process, replaced whole, emptied as a rescue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import NetworkList
from quartermaster_site.access.networks import Address, AllowList, NetworkRule, Standing, parse_network, written
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, Refused

MOST_RULES = 500
MOST_NOTE = 100
CONFIRM = "confirm"
"""The field of a refusal that a confirmation gets past."""
EMPTY = AllowList()
_known: tuple[Any, AllowList] = (None, EMPTY)


def current() -> AllowList:
    """What counts now, in one query of one row, or two after a change."""
    global _known
    stamp = NetworkList.objects.filter(pk=1).values_list("version", "changed_at").first()
    if stamp is None:
        return EMPTY
    if _known[0] != stamp:
        row = stored()
        _known = ((row.version, row.changed_at), AllowList(rules_of(row)))
    return _known[1]


def stored() -> NetworkList:
    """The row; an unsaved one where nobody made a list yet."""
    return NetworkList.objects.filter(pk=1).first() or NetworkList(pk=1)


def rules_of(row: NetworkList) -> tuple[NetworkRule, ...]:
    return rules_from(row.rules)


def rules_from(items: Sequence[Any]) -> tuple[NetworkRule, ...]:
    """The rules of stored JSON."""
    return tuple(NetworkRule(parse_network(item["network"]), item["admins_only"], item["note"]) for item in items)


def save_list(
    *, rules: Sequence[NetworkRule], version: int, here: Address | None, confirmed: bool, actor: Actor
) -> NetworkList:
    """Replace the list if it is still at `version`. `here` is the address of whoever saves it.

    Raises EditConflict, and Refused: with the field CONFIRM where the list would keep out `here` and that is not
    confirmed.
    """
    require(actor.user, Level.MANAGE)
    _check(rules)
    with transaction.atomic():
        NetworkList.objects.get_or_create(pk=1)
        row = NetworkList.objects.select_for_update().get(pk=1)
        if row.version != version:
            raise EditConflict(
                "Somebody saved the list meanwhile.",
                saved={"rules": row.rules},
                version=row.version,
                by=row.changed_by,
                at=row.changed_at,
            )
        problem = exclusion(rules, here)
        if problem and not confirmed:
            raise Refused(problem, fields={CONFIRM: problem})
        changes = _changes(rules_of(row), rules)
        if changes:
            _store(row, rules, actor)
            reason = f"confirmed: {problem}" if problem else ""
            record(actor, "network.change", label="network list", changes=changes, reason=reason)
    return row


def clear_list(*, actor: Actor) -> tuple[NetworkRule, ...]:
    """Let every address in again, for the command line; the rules that went."""
    with transaction.atomic():
        row = NetworkList.objects.select_for_update().filter(pk=1).first()
        if row is None or not row.rules:
            return ()
        gone = rules_of(row)
        _store(row, (), actor)
        record(actor, "network.clear", label="network list", changes=_changes(gone, ()), reason="on the command line")
    return gone


def exclusion(rules: Sequence[NetworkRule], here: Address | None) -> str:
    """In what way a list keeps an administrator out of where they are; empty where it does not."""
    standing = AllowList(tuple(rules)).standing(here)
    place = str(here) if here else "Your address, which is not known,"
    if standing is Standing.NONE:
        return f"{place} is not on this list: once it is stored, you are refused from there."
    if standing is Standing.AS_VIEWER:
        return f"{place} is in no row for admins: once this is stored, you have the rights of a viewer from there."
    return ""


def _check(rules: Sequence[NetworkRule]) -> None:
    if len(rules) > MOST_RULES:
        raise Refused(f"A list has at most {MOST_RULES} rows: join neighbours into networks.")
    if any(len(rule.note) > MOST_NOTE or (rule.note and not rule.note.isprintable()) for rule in rules):
        raise Refused(f"A note is one line of at most {MOST_NOTE} characters.")
    if len({(rule.network, rule.admins_only) for rule in rules}) < len(rules):
        raise Refused("A network stands twice in the list for the same people.")


def _store(row: NetworkList, rules: Sequence[NetworkRule], actor: Actor) -> None:
    row.rules = [
        {"network": written(rule.network), "admins_only": rule.admins_only, "note": rule.note} for rule in rules
    ]
    row.version += 1
    row.changed_at, row.changed_by = timezone.now(), actor.name[:150]
    row.save()


def _changes(before: Sequence[NetworkRule], after: Sequence[NetworkRule]) -> dict[str, list[Any]]:
    """Rows that came and went. Their order means nothing."""
    added = [str(rule) for rule in after if rule not in before]
    removed = [str(rule) for rule in before if rule not in after]
    return ({"added": [None, added]} if added else {}) | ({"removed": [removed, None]} if removed else {})
