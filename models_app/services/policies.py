"""Policies: made, changed and removed by administrators. They hold from the next request on (web.md 7.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import transaction

from gpus_app.models import Host
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import Policy, Role
from quartermaster_site.access.permissions import require
from quartermaster_site.access.rules import EVERY, MOST_PATTERN, MOST_STARS, Level
from quartermaster_site.errors import EditConflict, NotFound, Refused

MOST_POLICIES = 200
MOST_NOTE = 200
_ADMINS = "Administrators are not subject to policies: choose another role."


@dataclass(frozen=True, slots=True)
class PolicyValues:
    """What an administrator sets. One of `user`, `group`, `role`, or none of them: everyone."""

    user: int | None = None
    group: int | None = None
    role: str = ""
    host: int | None = None
    model: str = EVERY
    level: int = Level.VIEW
    note: str = ""


def values_of(policy: Policy) -> PolicyValues:
    """What is stored."""
    return PolicyValues(
        policy.user_id, policy.group_id, policy.role, policy.host_id, policy.model, policy.level, policy.note
    )


def get_policy(pk: int) -> Policy:
    """One policy; NotFound."""
    found = Policy.objects.select_related("user", "group", "host").filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such policy.")
    return found


def create_policy(*, values: PolicyValues, actor: Actor) -> Policy:
    """Raises Refused with a message per field."""
    require(actor.user, Level.MANAGE)
    _check(values)
    with transaction.atomic():
        if Policy.objects.count() >= MOST_POLICIES:
            raise Refused(f"An installation has at most {MOST_POLICIES} policies: use groups and patterns.")
        policy = _filled(Policy(), values, actor)
        policy.save()
        record(actor, "policy.create", subject=policy, host_slug=_slug(policy), changes=_changes({}, policy))
    return policy


def change_policy(*, policy: Policy, values: PolicyValues, version: int, actor: Actor) -> Policy:
    """Raises Refused with a message per field, EditConflict where somebody saved since the form was read."""
    require(actor.user, Level.MANAGE)
    _check(values)
    with transaction.atomic():
        held = _locked(policy, version)
        before = _said(held)
        if values_of(held) == values:
            return held
        held = _filled(held, values, actor)
        held.version += 1
        held.save()
        record(actor, "policy.change", subject=held, host_slug=_slug(held), changes=_changes(before, held))
    return held


def delete_policy(*, policy: Policy, version: int, actor: Actor) -> None:
    """Raises EditConflict where somebody changed it since the question was shown."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        held = _locked(policy, version)
        gone = {key: [value, ""] for key, value in _said(held).items()}
        record(actor, "policy.delete", subject=held, host_slug=_slug(held), changes=gone)
        held.delete()


def _locked(policy: Policy, version: int) -> Policy:
    held = Policy.objects.select_for_update().filter(pk=policy.pk).first()
    if held is None:
        raise NotFound("This policy is gone: somebody removed it meanwhile.")
    if held.version != version:
        raise EditConflict(
            "Somebody changed this policy meanwhile. Look again, then save.", saved=_said(held), version=held.version
        )
    return held


def _filled(policy: Policy, values: PolicyValues, actor: Actor) -> Policy:
    policy.user_id, policy.group_id, policy.role = values.user, values.group, values.role
    policy.host_id, policy.model, policy.level, policy.note = values.host, values.model, values.level, values.note
    policy.changed_by = actor.user
    return policy


def _check(values: PolicyValues) -> None:
    problems: dict[str, str] = {}
    if sum(map(bool, (values.user, values.group, values.role))) > 1:
        problems["subject"] = "Choose one: a user, a group, a role, or everyone."
    elif values.role == Role.ADMIN:
        problems["subject"] = _ADMINS
    elif values.user and not get_user_model().objects.filter(pk=values.user).exists():
        problems["subject"] = "There is no such user any more."
    elif values.group and not Group.objects.filter(pk=values.group).exists():
        problems["subject"] = "There is no such group any more."
    if values.host and not Host.objects.filter(pk=values.host).exists():
        problems["host"] = "There is no such host any more."
    if problem := pattern_problem(values.model):
        problems["model"] = problem
    if values.level not in dict(Policy.LEVELS):
        problems["level"] = f"One of {', '.join(dict(Policy.LEVELS).values())}."
    if problems:
        raise Refused("This policy cannot be stored like this.", fields=problems)


def pattern_problem(pattern: str) -> str:
    """Why a pattern cannot be used; empty where it can."""
    if not pattern:
        return (
            f"Write {EVERY} for all models, an id such as llama-3-8b, a pattern such as *vl*, or a path with a slash."
        )
    if len(pattern) > MOST_PATTERN or not pattern.isprintable():
        return f"At most {MOST_PATTERN} printable characters."
    if pattern.count("*") > MOST_STARS:
        return f"At most {MOST_STARS} wildcards *."
    return ""


def _said(policy: Policy) -> dict[str, Any]:
    """As the audit log and a conflict name it."""
    return {
        "subject": policy.subject,
        "host": policy.host.slug if policy.host else EVERY,
        "model": policy.model,
        "level": policy.get_level_display(),
        "note": policy.note,
    }


def _changes(before: dict[str, Any], policy: Policy) -> dict[str, list[Any]]:
    after = _said(policy)
    return {key: [before.get(key, ""), value] for key, value in after.items() if before.get(key, "") != value}


def _slug(policy: Policy) -> str:
    return policy.host.slug if policy.host else ""
