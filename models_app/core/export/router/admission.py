"""Which running models the reference router stops to load another one (config-yaml.md 10.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Group:
    """One group with the reader's defaults."""

    name: str = "(default)"
    swap: bool = True
    exclusive: bool = True
    persistent: bool = False
    pool: str = ""


def groups_by_model(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, Group]:
    """Member id -> its group; models outside belong to the default `Group()`."""
    return {
        member: Group(
            name,
            fields.get("swap", True),
            fields.get("exclusive", True),
            fields.get("persistent", False),
            fields.get("pool", ""),
        )
        for name, fields in groups.items()
        for member in fields.get("members") or ()
    }


def evictions(
    groups: Mapping[str, Mapping[str, Any]],
    estimates_gb: Mapping[str, float],
    running: Sequence[str],
    target: str,
    *,
    budget_gb: float,
    live_ceiling_gb: float | None = None,
) -> list[str]:
    """Models to stop, least recently used first; `running` is in that order.

    With a budget and an estimate of the target, as few as needed go; else the plain group rules decide. The live
    ceiling only tightens a budget.
    """
    if target in running:
        return []
    membership = groups_by_model(groups)
    if budget_gb <= 0 or estimates_gb.get(target, 0) <= 0:
        return _by_groups(membership, running, target)
    budget = budget_gb if live_ceiling_gb is None else min(budget_gb, live_ceiling_gb)
    total = estimates_gb[target]
    unknown, candidates = [], []
    pool = membership.get(target, Group()).pool
    for model in running:
        group = membership.get(model, Group())
        if group.pool != pool:
            continue
        estimate = estimates_gb.get(model, 0)
        if not group.persistent and estimate <= 0:
            unknown.append(model)
            continue
        total += estimate
        if not group.persistent:
            candidates.append(model)
    stopped = set(unknown)
    for model in candidates:
        if total <= budget:
            break
        stopped.add(model)
        total -= estimates_gb[model]
    return [model for model in running if model in stopped]


def _by_groups(membership: Mapping[str, Group], running: Sequence[str], target: str) -> list[str]:
    own = membership.get(target, Group())
    stopped = []
    for model in running:
        group = membership.get(model, Group())
        if group.name == own.name:
            if own.swap:
                stopped.append(model)
        elif own.exclusive and not group.persistent:
            stopped.append(model)
    return stopped
