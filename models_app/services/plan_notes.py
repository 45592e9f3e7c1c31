"""What is kept of the plans of a host until its text is made and they are stored: what lists show, and no more.

Ten thousand whole plans are hundreds of megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from models_app import convert
from models_app.core.catalog import Header, Plan, Row
from models_app.pages.placement_text import engine_placement_word, placement_word
from models_app.services.backend_facts import BackendFacts
from models_app.services.command_findings import doubtful_of, refused_words


@dataclass
class PlanNotes:
    """Takes the plans of a `HostPlanner`. All of it by path of the model."""

    served: dict[str, str] = field(default_factory=dict)
    """The id under which a planned model is served."""
    columns: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    """Of its `StoredPlan`s, the base first."""
    refused: dict[str, Sequence[str]] = field(default_factory=dict)
    """Flags of its commands that its executable does not know; only models with some."""

    doubtful: dict[str, Sequence[str]] = field(default_factory=dict)
    """By the id of an entry: flags that a person put into its command and has to confirm; only entries with some."""

    def take(self, row: Row, header: Header | None, plans: Sequence[Plan], backend: BackendFacts) -> None:
        self.served[row.full_path] = row.id
        self.columns[row.full_path] = tuple(stored_columns(plan, header) for plan in plans)
        if words := refused_words(plans, backend):
            self.refused[row.full_path] = words
        self.doubtful |= {plan.profile_id: flags for plan in plans if (flags := doubtful_of(plan, backend))}

    def is_served(self, path: str) -> bool:
        """Whether a model has plans, and each of them is to be in the file."""
        plans = self.columns.get(path)
        return bool(plans) and not any(plan["skip_reason"] for plan in plans or ())


def stored_columns(plan: Plan, header: Header | None) -> dict[str, Any]:
    """What lists show of a plan."""
    return {**convert.plan_columns(plan), "placement_text": _placement(plan, header)}


def _placement(plan: Plan, header: Header | None) -> str:
    if plan.engine:
        return engine_placement_word(plan)
    return placement_word(plan.placement, header.block_count) if plan.placement and header is not None else ""
