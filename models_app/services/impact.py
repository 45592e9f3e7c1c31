"""What a section of a host's settings would change: every model planned with what is stored and with what is typed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.cache import cache
from django.db.models import prefetch_related_objects

from gpus_app.models import Host
from gpus_app.selectors import with_section
from models_app import convert
from models_app.core.catalog import Plan
from models_app.core.settings import Override
from models_app.models import Row
from models_app.plan_figures import PlanFigures
from models_app.selectors.sight import seen_rows
from models_app.services.planning import HostFacts, HostPlanner, host_facts, stored_override

SECONDS = 4.0
KEPT_SECONDS = 600
MOST_SHOWN = 5
_FITTING = ("fits", "spills")


@dataclass(frozen=True, slots=True)
class Change:
    """One model whose plan comes out differently."""

    pk: int
    served_id: str
    before: PlanFigures
    after: PlanFigures

    @property
    def stops_fitting(self) -> bool:
        return self.before.verdict in _FITTING and self.after.verdict not in _FITTING

    @property
    def starts_fitting(self) -> bool:
        return self.before.verdict not in _FITTING and self.after.verdict in _FITTING

    @property
    def size(self) -> tuple[bool, int]:
        """How much it matters: what stops fitting first, then by the memory that moves."""
        moved = abs(self.after.est_vram_bytes - self.before.est_vram_bytes)
        return self.stops_fitting, moved + abs(self.after.est_ram_bytes - self.before.est_ram_bytes)


@dataclass(frozen=True, slots=True)
class Impact:
    """`planned` models of `total` were looked at within the time; `largest` are a few of the `changed` ones."""

    total: int
    planned: int
    changed: int
    stop_fitting: int
    start_fitting: int
    largest: tuple[Change, ...]


def settings_impact(
    host: Host, section: str, values: Mapping[str, Any], user: Any, *, seconds: float = SECONDS
) -> Impact:
    """What planning the host with these values of a section would change of the models that a person sees. Nothing is
    stored.

    After `seconds` the models that were not reached are only counted. A complete answer is kept for ten minutes, under
    everything that it depends on.
    """
    prefetch_related_objects([host], "devices", "settings", "backends")
    before, after = host_facts(host), host_facts(with_section(host, section, values))
    return _kept_impact(host, _rows(host, user), before, after, seconds)


def overrides_impact(host: Host, overrides: Sequence[Override], user: Any, *, seconds: float = SECONDS) -> Impact:
    """The same with these overrides in place of the stored ones, over the models that others would apply to."""
    prefetch_related_objects([host], "devices", "settings", "backends")
    before = host_facts(host)
    after = replace(before, overrides=overrides)
    rows = [row for row in _rows(host, user) if _content(before, row) != _content(after, row)]
    return _kept_impact(host, rows, before, after, seconds)


def _content(facts: HostFacts, row: Row) -> Override:
    """What is pinned for a row, whichever pattern says it."""
    return replace(stored_override(facts, row), match="", quant="")


def _rows(host: Host, user: Any) -> list[Row]:
    return list(
        seen_rows(user).filter(host=host).exclude(model_class="").exclude(state=Row.State.MISSING).order_by("path")
    )


def _kept_impact(host: Host, rows: Sequence[Row], before: HostFacts, after: HostFacts, seconds: float) -> Impact:
    key = _key(host, rows, before, after)
    known = cache.get(key)
    if isinstance(known, Impact):
        return known
    found = _impact(rows, before, after, time.monotonic() + seconds)
    if found.planned == found.total:
        cache.set(key, found, KEPT_SECONDS)
    return found


def _impact(rows: Sequence[Row], before: HostFacts, after: HostFacts, until: float) -> Impact:
    planned, changes = 0, []
    for row, old, new in planned_twice(rows, before, after):
        planned += 1
        if list(map(_shape, old)) != list(map(_shape, new)):
            changes.append(Change(row.pk, row.served_id, PlanFigures.of(old[0]), PlanFigures.of(new[0])))
        if time.monotonic() > until:
            break
    return Impact(
        total=len(rows),
        planned=planned,
        changed=len(changes),
        stop_fitting=sum(change.stops_fitting for change in changes),
        start_fitting=sum(change.starts_fitting for change in changes),
        largest=tuple(sorted(changes, key=lambda change: change.size, reverse=True)[:MOST_SHOWN]),
    )


def planned_twice(
    rows: Sequence[Row], before: HostFacts, after: HostFacts
) -> Iterator[tuple[Row, tuple[Plan, ...], tuple[Plan, ...]]]:
    """Each row of one host with its plans under both facts, the base first. In a handful of queries."""
    if not rows:
        return
    found = [replace(convert.core_row(row), id=row.served_id) for row in rows]
    files = {path for row in found for path in (row.full_path, row.mmproj_path, row.draft_path, row.codec_path)}
    files |= {override.mmproj_file for facts in (before, after) for override in facts.overrides}
    headers = convert.headers_at_once(rows[0].host, files)
    planners = HostPlanner(before, headers), HostPlanner(after, headers)
    for row, core in zip(rows, found, strict=True):
        header = headers(row.path)
        old, new = (planner(core, header, stored_override(planner.facts, row)) for planner in planners)
        yield row, old, new


def _shape(plan: Plan) -> tuple[Any, ...]:
    """What a person would call the plan: its command, place and verdict."""
    return plan.lines, plan.verdict, plan.placement, plan.est_vram_bytes, plan.est_ram_bytes


def _key(host: Host, rows: Sequence[Row], before: HostFacts, after: HostFacts) -> str:
    files = [(row.path, row.size_bytes, row.mtime_ns, row.served_id, row.model_class) for row in rows]
    parts = [
        (facts.settings, facts.budget, facts.overrides, sorted(facts.excesses.items()), sorted(facts.backends))
        for facts in (before, after)
    ]
    return f"impact:{host.pk}:{hashlib.sha256(repr((files, parts)).encode()).hexdigest()}"
