"""Groups of people: made, changed and removed by administrators. They hold from the next request on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import transaction

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, NotFound, Refused

MOST_GROUPS = 100


@dataclass(frozen=True, slots=True)
class GroupValues:
    name: str
    members: frozenset[int] = frozenset()


def get_group(pk: int) -> Group:
    """One group; NotFound."""
    found = Group.objects.filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such group.")
    return found


def save_group(*, group: Group | None, values: GroupValues, seen: GroupValues | None = None, actor: Actor) -> Group:
    """A new group, or one under another name with other members. `seen` is what stood on the page.

    Raises Refused, EditConflict where somebody changed it since.
    """
    require(actor.user, Level.MANAGE)
    _check_group(values, group)
    with transaction.atomic():
        if group is None and Group.objects.count() >= MOST_GROUPS:
            raise Refused(f"An installation has at most {MOST_GROUPS} groups.")
        held = Group.objects.select_for_update().filter(pk=group.pk).first() if group else Group()
        if held is None:
            raise NotFound("This group is gone: somebody removed it meanwhile.")
        before = group_values(held) if group else GroupValues("")
        if group and seen is not None and before not in (seen, values):
            raise EditConflict(
                "Somebody changed this group meanwhile. Look again, then save.", saved=_said_group(before), version=0
            )
        held.name = values.name
        held.save()
        held.user_set.set(values.members)
        old, new = _said_group(before), _said_group(values)
        changes = {key: [old[key], new[key]] for key in new if old[key] != new[key]}
        if changes:
            record(actor, "group.change" if group else "group.create", subject=held, changes=changes)
    return held


def delete_group(*, group: Group, actor: Actor) -> int:
    """With the policies about it; how many these were."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        gone = [str(policy) for policy in group.policies.all()]
        said = {key: [value, ""] for key, value in _said_group(group_values(group)).items()}
        record(actor, "group.delete", subject=group, changes=said | ({"policies": [gone, []]} if gone else {}))
        group.delete()
    return len(gone)


def group_values(group: Group) -> GroupValues:
    """What is stored."""
    members: Iterable[int] = group.user_set.values_list("pk", flat=True)
    return GroupValues(group.name, frozenset(members))


def _said_group(values: GroupValues) -> dict[str, Any]:
    names = get_user_model().objects.filter(pk__in=values.members).order_by("username")
    return asdict(values) | {"members": list(names.values_list("username", flat=True))}


def _check_group(values: GroupValues, group: Group | None) -> None:
    problems: dict[str, str] = {}
    others = Group.objects.exclude(pk=group.pk) if group else Group.objects.all()
    if not values.name or len(values.name) > 100 or not values.name.isprintable():
        problems["name"] = "A name of 1 to 100 printable characters."
    elif others.filter(name__iexact=values.name).exists():
        problems["name"] = "There is a group of this name already."
    if get_user_model().objects.filter(pk__in=values.members).count() != len(values.members):
        problems["members"] = "One of these people is not there any more."
    if problems:
        raise Refused("This group cannot be stored like this.", fields=problems)
