"""Policies in the order of their evaluation, what each matches now, and which can never decide anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count, Q

from gpus_app.models import Host
from models_app.models import Row
from quartermaster_site.access.grants import ROWS, grants_of, matching, rule_of
from quartermaster_site.access.models import Policy, Role
from quartermaster_site.access.permissions import Level
from quartermaster_site.access.rules import Rule, Scope, Subject, Verdict, loses_to, never_wins, ordered

MOST_NAMED = 3
"""Other policies in one remark."""


@dataclass(frozen=True, slots=True)
class Matches:
    models: int
    hosts: int


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """One policy: what it covers now, why it can never win, if so, and where it hides nothing."""

    policy: Policy
    matches: Matches
    idle: str
    loses: str


def policies() -> Sequence[Policy]:
    """All, as they are asked: the first that covers an object decides."""
    found = {policy.pk: policy for policy in Policy.objects.select_related("user__account", "group", "host")}
    return [found[rule.number] for rule in ordered(map(rule_of, found.values()))]


def policy_lines() -> list[PolicyLine]:
    """What the page of policies lists, in five queries."""
    found = policies()
    rules = {policy.pk: rule_of(policy) for policy in found}
    counts = _counts(list(rules.values()))
    members = _members()
    hosts = _own_hosts(found)
    return [
        PolicyLine(policy, counts[policy.pk], _idle(policy, rules, members), _loses(policy, rules, hosts))
        for policy in found
    ]


def remark_on(policy: Policy) -> str:
    """Why one policy does not do what it says, in a sentence; empty where it does."""
    found = policies()
    rules = {held.pk: rule_of(held) for held in found}
    if idle := _idle(policy, rules, _members()):
        return f"It never decides: {idle}."
    loses = _loses(policy, rules, _own_hosts(found))
    return f"It does not hide everywhere: {loses}." if loses else ""


def matches_of(rule: Rule) -> Matches:
    """What one policy covers now."""
    return _counts([rule])[rule.number]


def _counts(rules: Sequence[Rule]) -> dict[int, Matches]:
    asked: dict[str, Any] = {}
    for rule in rules:
        asked[f"models_{rule.number}"] = Count("pk", filter=matching(rule, ROWS))
        asked[f"hosts_{rule.number}"] = Count("host", filter=matching(rule, ROWS), distinct=True)
    found: Mapping[str, int] = Row.objects.aggregate(**asked) if asked else {}
    all_hosts = Host.objects.count() if any(rule.is_host_wide for rule in rules) else 0
    return {
        rule.number: Matches(
            found[f"models_{rule.number}"],
            (all_hosts if rule.host is None else 1) if rule.is_host_wide else found[f"hosts_{rule.number}"],
        )
        for rule in rules
    }


def _members() -> dict[str, list[str]]:
    """Group -> its active members who are subject to policies."""
    people = get_user_model().objects.filter(is_active=True, groups__isnull=False)
    found: dict[str, list[str]] = {}
    for group, name in people.exclude(account__role=Role.ADMIN).values_list("groups__name", "username"):
        found.setdefault(group, []).append(name)
    return found


def _idle(policy: Policy, rules: Mapping[int, Rule], members: Mapping[str, Sequence[str]]) -> str:
    """Why a policy can never win, in words; empty where it can."""
    if policy.kind is Subject.ROLE and policy.role == Role.ADMIN:
        return "administrators are not subject to policies"
    if policy.user is not None:
        account = getattr(policy.user, "account", None)
        if account is not None and account.role == Role.ADMIN:
            return f"{policy.user} is an administrator: policies do not apply"
        if not policy.user.is_active:
            return f"{policy.user} may not sign in"
    own = members.get(policy.who, []) if policy.kind is Subject.GROUP else None
    if own is not None and not own:
        return f"nobody in {policy.who} is subject to it"
    rule = rules[policy.pk]
    others = [other for other in rules.values() if other is not rule]
    before = never_wins(rule, others, own)
    return f"another one always decides first: {_text(before)}" if before else ""


def _own_hosts(found: Sequence[Policy]) -> dict[int, str]:
    return {policy.host.pk: policy.host.name or policy.host.slug for policy in found if policy.host}


def _loses(policy: Policy, rules: Mapping[int, Rule], hosts: Mapping[int, str]) -> str:
    """Where a policy that hides on every host does not, in words; empty where it hides on all."""
    before = loses_to(rules[policy.pk], rules.values())
    said = [f"on {hosts[rule.host]} {_text(rule)} decides first" for rule in before[:MOST_NAMED] if rule.host]
    more = f", and {len(before) - MOST_NAMED} more" if len(before) > MOST_NAMED else ""
    return "; ".join(said) + more


def _text(rule: Rule) -> str:
    who = "everyone" if rule.subject is Subject.EVERYONE else f"{rule.subject.name.lower()} {rule.who}"
    return f"{who}, {rule.model}, {rule.level.name.lower()}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why somebody may do what they may."""

    verdict: Verdict
    role_level: Level
    row: Row | None
    """The model that was meant; None for a host, or where none of this name is there."""
    policies: Mapping[int, Policy]


def explain(user: Any, host: Host, model: str) -> Explanation:
    """Every policy that covers a host or a model for a person, and which one decides. `model`: an id or a path."""
    row = _named(host, model) if model else None
    scope = row.policy_scope() if row else _scope(host, model)
    if row and model not in (row.served_id, row.base_id, row.path):
        scope = Scope(scope.host, scope.names, scope.path, variant=model)
    grants = grants_of(user)
    verdict = grants.verdict(scope)
    stored = Policy.objects.select_related("user", "group", "host").in_bulk([rule.number for rule in verdict.matching])
    return Explanation(verdict, grants.default, row, stored)


def _scope(host: Host, model: str) -> Scope:
    if not model:
        return Scope(host.pk)
    is_path = "/" in model or "\\" in model
    return Scope(host.pk, path=model) if is_path else Scope(host.pk, (model,))


def _named(host: Host, model: str) -> Row | None:
    """The model of an id, a path, or one of its variants."""
    names = Q(served_id__iexact=model) | Q(path=model) | Q(base_id__iexact=model) | Q(plans__profile_id__iexact=model)
    found = Row.objects.filter(names, host=host).distinct()
    return min(found, key=lambda row: (row.served_id.lower() != model.lower(), row.served_id), default=None)
