"""Policies in words: the list, and why somebody may do what they may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from gpus_app.models import Host
from models_app.selectors.policies import Explanation, Matches, PolicyLine
from quartermaster_site.access.models import Policy
from quartermaster_site.access.permissions import Level
from quartermaster_site.access.rules import Rule

TONES = {Level.NONE: ("bad", "off"), Level.VIEW: ("", "ok"), Level.OPERATE: ("ok", "ok"), Level.EDIT: ("warn", "ok")}
DOES: Sequence[tuple[Level, str, str]] = (
    (Level.VIEW, "see the host, its jobs, plans and texts", "see the model and its plan, try values"),
    (Level.OPERATE, "scan, probe, plan, publish, roll back", "read it again, test it, unload it, acknowledge issues"),
    (Level.EDIT, "change memory, devices, rules, shared variants", "change its settings and variants"),
    (Level.MANAGE, "change folders, backends, targets, people", "write whole commands"),
)
"""What a level allows on a host, and on a model."""


@dataclass(frozen=True, slots=True)
class PolicyView:
    policy: Policy
    covers: str
    idle: str
    loses: str
    explain_url: str

    @property
    def url(self) -> str:
        return reverse("models:policy-edit", args=[self.policy.pk])


def covers(policy: Policy, matches: Matches) -> str:
    """`12 models on 2 hosts`; a policy on whole hosts names these too."""
    models = f"{matches.models:,} model{'' if matches.models == 1 else 's'}"
    return f"{models} on {matches.hosts:,} host{'' if matches.hosts == 1 else 's'}"


def policy_views(lines: Sequence[PolicyLine]) -> list[PolicyView]:
    return [
        PolicyView(
            line.policy, covers(line.policy, line.matches), line.idle, line.loses, reverse("models:policy-explain")
        )
        for line in lines
    ]


@dataclass(frozen=True, slots=True)
class Allowed:
    text: str
    level: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One policy that covers the object."""

    policy: Policy | None
    rule: Rule
    decides: bool
    why: str


@dataclass(frozen=True, slots=True)
class Explained:
    sentence: str
    reason: str
    level: str
    hidden: bool
    steps: Sequence[Step]
    allowed: Sequence[Allowed]
    note: str


def explained(found: Explanation, person: Any, host: Host, model: str) -> Explained:
    """The answer of the Explain page."""
    verdict, thing = found.verdict, model or f"the host {host.name}"
    level = verdict.level
    word = "does not see" if level is Level.NONE else f"may {level.name.lower()}"
    place = f" on {host.name}" if model else ""
    steps = [_step(rule, found, verdict.winner) for rule in verdict.matching]
    allowed = [
        Allowed(on_host if not model else on_model, need.name.lower(), level >= need)
        for need, on_host, on_model in DOES
    ]
    note = (
        f"No model of this name is on {host.name} now; this is what would hold for one."
        if model and not found.row
        else ""
    )
    return Explained(
        f"{person} {word} {thing}{place}.",
        _reason(found, person),
        level.name.lower(),
        level is Level.NONE,
        steps,
        allowed,
        note,
    )


def _reason(found: Explanation, person: Any) -> str:
    account = getattr(person, "account", None)
    role = account.role if account else "viewer"
    if not person.is_active:
        return "The account may not sign in."
    if found.role_level is Level.MANAGE:
        return "Administrators are not subject to policies."
    if found.verdict.winner is None:
        return f"No policy matches, so the role {role} decides: {found.role_level.name.lower()}."
    count = len(found.verdict.matching)
    if count == 1:
        return (
            f"One policy matches. It takes the place of what the role {role} gives ({found.role_level.name.lower()})."
        )
    gives = f"the role {role} gives ({found.role_level.name.lower()})"
    return f"{count} policies match. The first decides, in place of what {gives}."


def _step(rule: Rule, found: Explanation, winner: Rule | None) -> Step:
    models = "all models" if rule.is_host_wide else "a pattern of models"
    host = "every host" if rule.host is None else "this host"
    who = "everyone" if not rule.subject else f"a {rule.subject.name.lower()}"
    why = f"{models} on {host}: {rule.score} of 3; about {who}: {int(rule.subject)} of 3"
    return Step(found.policies.get(rule.number), rule, rule is winner, why)
