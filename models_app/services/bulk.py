"""One change for many models at once: what it would do to each, and storing it, each row with its own result.

A model that cannot take the change is left as it is and says why; the others are changed all the same (web.md 5.4).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import prefetch_related_objects

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app import convert
from models_app.bulk_form import EVERYTHING
from models_app.core import catalog
from models_app.core.catalog import Header, Plan
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.fields.groups import model_fields
from models_app.core.launch.backends import engine_of
from models_app.core.launch.locks import locked_fields
from models_app.core.launch.ownership import custom_text
from models_app.core.launch.pins import read_pins
from models_app.core.settings import Override
from models_app.core.state.checks import Limits
from models_app.core.state.typed import control_text, read
from models_app.models import Override as StoredOverride
from models_app.models import Row
from models_app.plan_figures import PlanFigures
from models_app.services.arguments import rules_of
from models_app.services.editing import Pinned, Planning, check_values, edited, store_override
from models_app.services.named_files import check_files
from models_app.services.planning import HostFacts, HostPlanner, host_facts, stored_override
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, NotAllowed, Refused

MOST_ROWS = 1000
PREVIEW_SECONDS = 4.0
SAVED, UNCHANGED, REFUSED, CONFLICT, UNPLANNED = "saved", "unchanged", "refused", "conflict", "not planned"
_LABELS = {field.key: field.label for field in OVERRIDE_FIELDS}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change does, or did, to one model. The figures are those of its base before and after, where planned."""

    row: Row
    version: int
    """Of what is pinned for the model now."""
    word: str
    text: str = ""
    before: PlanFigures | None = None
    after: PlanFigures | None = None


@dataclass(frozen=True, slots=True)
class _Model:
    """One model with all that a change of it depends on."""

    row: Row
    current: Pinned
    header: Header | None
    facts: HostFacts
    planner: HostPlanner
    found: catalog.Row

    def plans(self, override: Override) -> tuple[Plan, ...]:
        return self.planner(self.found, self.header, override)

    def figures(self, override: Override) -> PlanFigures:
        return PlanFigures.of(self.plans(override)[0])

    @property
    def planning(self) -> Planning:
        return Planning(self.facts.settings, self.plans, self.header.is_moe if self.header else None)

    def values(self, typed: Mapping[str, str]) -> dict[str, Any]:
        """The texts of a form as values of this model. Raises Refused with the reason."""
        engine = engine_of(self.facts.settings, self.current.override, self.row.model_class)
        fields = {field.key: field for field in model_fields(self.row.model_class, engine)}
        if EVERYTHING in typed:
            return {key: field.absent for key, field in fields.items()}
        if unknown := [_LABELS[key] for key in typed if key not in fields]:
            raise Refused(f"A model of this kind has no setting {' or '.join(unknown)}.")
        rules, text = rules_of(self.row.host), custom_text(self.current.override)
        moe = self.header.is_moe if self.header else None
        locked = locked_fields(text, engine, is_moe=moe, rules=rules)
        if owned := [f"{_LABELS[key]} ({locked[key]})" for key in typed if key in locked]:
            raise Refused(f"Its custom launch arguments own {', '.join(owned)}.")
        stored = self.current.fields
        texts = {key: control_text(field, stored.get(key, field.absent)) for key, field in fields.items()}
        limits = Limits(
            trained_tokens=self.header.context_length if self.header else 0,
            block_count=self.header.block_count if self.header else 0,
            device_count=len(self.facts.budget.device_bytes),
            rope_scaling=read_pins(text, rules).rope_scaling,
        )
        reading = read(fields.values(), {**texts, **typed}, limits)
        if problems := [problem for key, problem in reading.errors.items() if key in typed]:
            raise Refused(" ".join(problems))
        return {key: reading.values[key] for key in typed}


def preview_change(
    rows: Sequence[Row], typed: Mapping[str, str], *, user: Any, seconds: float = PREVIEW_SECONDS
) -> list[Outcome]:
    """What the change would do to each model if a person made it, in the order of the rows; nothing is stored.

    After `seconds` the rest is checked but not planned.
    """
    until = time.monotonic() + seconds
    return [_previewed(model, typed, user, planned=time.monotonic() < until) for model in _models(rows)]


def _previewed(model: _Model, typed: Mapping[str, str], user: Any, *, planned: bool) -> Outcome:
    row, version = model.row, model.current.version
    try:
        require(user, Level.EDIT, row)
        values = model.values(typed)
        check_values(values)
        check_files(user, row.host, model.current.fields, values)
    except NotAllowed as refusal:
        return Outcome(row, version, REFUSED, str(refusal))
    except Refused as refusal:
        return Outcome(row, version, REFUSED, _reason(refusal))
    after = edited(row, model.current.override, values, model.planning.is_moe)
    if convert.override_fields(after) == model.current.fields:
        return Outcome(row, version, UNCHANGED)
    if not planned:
        return Outcome(row, version, UNPLANNED)
    return Outcome(row, version, SAVED, "", model.figures(model.current.override), model.figures(after))


def apply_change(
    rows: Sequence[Row], typed: Mapping[str, str], *, versions: Mapping[int, int], actor: Actor
) -> list[Outcome]:
    """Store the change for each model that can take it. `versions`: key of a row -> what its form started from.

    One transaction and one new plan a host. Nobody's change is overwritten: a field that somebody set since is a
    conflict of its row.
    """
    outcomes: dict[int, Outcome] = {}
    for host in {row.host_id: row.host for row in rows}.values():
        with transaction.atomic():
            Host.objects.select_for_update().get(pk=host.pk)
            for model in _models([row for row in rows if row.host_id == host.pk]):
                outcomes[model.row.pk] = _applied(model, typed, versions.get(model.row.pk, -1), actor)
            if any(outcomes[row.pk].word == SAVED for row in rows if row.host_id == host.pk):
                request_plan(host=host, actor=actor)
    return [outcomes[row.pk] for row in rows]


def _applied(model: _Model, typed: Mapping[str, str], version: int, actor: Actor) -> Outcome:
    row, known = model.row, model.current.version
    try:
        require(actor.user, Level.EDIT, row)
        values = model.values(typed)
        check_values(values)
        own = store_override(row, model.current, values, model.planning, version=version, actor=actor, action="bulk")
    except EditConflict as conflict:
        return Outcome(row, known, CONFLICT, f"{conflict} Look at it, then apply again.")
    except NotAllowed as refusal:
        return Outcome(row, known, REFUSED, str(refusal))
    except Refused as refusal:
        return Outcome(row, known, REFUSED, _reason(refusal))
    now = own.version if own else 0
    return Outcome(row, now, SAVED if now > known else UNCHANGED)


def _reason(refusal: Refused) -> str:
    return " ".join(refusal.fields.values()) or str(refusal)


def _models(rows: Sequence[Row]) -> Iterable[_Model]:
    """The rows with what is pinned for them, in a handful of queries a host."""
    by_host: dict[int, list[Row]] = {}
    for row in rows:
        by_host.setdefault(row.host_id, []).append(row)
    found = {model.row.pk: model for own in by_host.values() for model in _of_host(own)}
    return [found[row.pk] for row in rows]


def _of_host(rows: Sequence[Row]) -> Iterable[_Model]:
    host = rows[0].host
    prefetch_related_objects([host], "backends")
    facts = host_facts(host)
    core = [replace(convert.core_row(row), id=row.served_id) for row in rows]
    companions = {path for row in core for path in (row.mmproj_path, row.draft_path, row.codec_path)}
    pinned_files = {override.mmproj_file for override in facts.overrides}
    headers = convert.headers_at_once(host, {row.path for row in rows} | companions | pinned_files)
    planner = HostPlanner(facts, headers)
    held = StoredOverride.objects.filter(host=host, quant="", match__in=[row.path for row in rows])
    own = {stored.match: stored for stored in held.select_related("changed_by").prefetch_related("variants")}
    for row, found in zip(rows, core, strict=True):
        override, mine = stored_override(facts, row), own.get(row.path)
        current = Pinned(override, mine, "" if mine else override.match)
        yield _Model(row, current, headers(row.path), facts, planner, found)
