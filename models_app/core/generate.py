"""The whole pipeline as one function: rows and headers in, a router's file and a report out (config-yaml.md 1).

Nothing here touches the disk or the clock. One bad row becomes a comment; it never fails the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gpus_app.core.budget import Budget
from models_app.core.catalog import Finding, Header, Plan, Row
from models_app.core.discovery.enhancers import detect, pair_of
from models_app.core.discovery.hostile_names import printable
from models_app.core.discovery.inventory import Inventory
from models_app.core.discovery.names import free_name
from models_app.core.errors import QuartermasterError
from models_app.core.export.build import Declared, build_document
from models_app.core.export.dialects import BY_SLUG, DEFAULT_DIALECT, Dialect
from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.entry import PlannedModel, plan_warnings
from models_app.core.export.findings import CheckFinding, unstable
from models_app.core.export.fragments import NO_FRAGMENTS, Fragments, entries_apart, with_fragments
from models_app.core.export.kept import kept_header, kept_plan
from models_app.core.export.keys import ExportKey, with_keys
from models_app.core.export.llama_swap import Options
from models_app.core.export.macros import neutral
from models_app.core.export.memory_rules import plan_concerns
from models_app.core.launch.tokens import POSIX
from models_app.core.plans.launch_devices import budget_of_server
from models_app.core.settings import Override, Settings
from models_app.core.state.overrides import resolve_override
from models_app.core.units import to_gib

Planner = Callable[[Row, Header | None, Override], Sequence[Plan]]
"""Every profile of one row under its served id, the base first; a plan that cannot be emitted says why."""

BudgetOf = Callable[[Override, str], Budget | None]
"""The budget for a model of a class under an override: devices are named as its server names them."""


def no_budget(override: Override, model_class: str) -> Budget | None:
    """For a file without any device pins."""
    return None


FILE_FINDINGS = frozenset({"unsafe-name", "file-unreadable", "shards-missing", "package-incomplete"})
"""Kinds of findings that cost a model: the file is no row, so only the finding can say why."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of every file, for programs."""

    entries: tuple[dict[str, Any], ...] = ()
    skipped: tuple[dict[str, Any], ...] = ()
    warnings: tuple[dict[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {"entries": list(self.entries), "skipped": list(self.skipped), "warnings": list(self.warnings)}


@dataclass(frozen=True, slots=True)
class Generated:
    """A file that has not been written yet. Blocking findings forbid writing it."""

    text: str
    document: Document
    report: Report
    findings: tuple[CheckFinding, ...] = ()


def generate(
    inventory: Inventory,
    planner: Planner,
    *,
    header_of: Callable[[str], Header | None],
    settings: Settings,
    timestamp: str,
    overrides: Sequence[Override] = (),
    same_path: Callable[[str, str], bool] | None = None,
    budget_of: BudgetOf = no_budget,
    dialect: str = DEFAULT_DIALECT,
    options: Options | None = None,
    cache_dir: str = "",
    word_rules: str = POSIX,
    fragments: Fragments = NO_FRAGMENTS,
    keys: Sequence[ExportKey] = (),
    on_row: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Generated:
    """A file for one host. Raises `ExportError` where a dialect must not be written from these settings.

    `same_path` is that of `resolve_override`; `budget_of` says which device servers with one device are told to use;
    `word_rules` are those by which the host splits commands; `fragments` are merged last; `keys` stand in place of
    those of the settings.
    """
    own = {
        (row.full_path, row.quant): resolve_override(overrides, row.full_path, row.quant, same_path) or Override()
        for row in inventory.rows
    }

    def budget_of_launch(override: Override, model_class: str) -> Budget | None:
        budget = budget_of(override, model_class)
        return budget and budget_of_server(budget, settings, override, model_class, word_rules)

    planned_item = partial(_unless_skipped, own, planner, header_of, budget_of_launch)
    planned_rows = _all_planned(inventory.rows, _chosen_ids(own), planned_item, on_row)
    items = [*_with_enhancers(planned_rows), *_lost_files(inventory)]
    router = BY_SLUG[dialect]
    planned = [item for item in items if isinstance(item, PlannedModel)]
    ids = [plan.profile_id for item in planned for plan in item.plans]
    settings, fragments = entries_apart(settings, fragments, ids)
    declared = Declared({own.match: own for own in overrides}, lambda override: budget_of(override, "image"))
    built = build_document(items, settings, timestamp, cache_dir=cache_dir, declared=declared, word_rules=word_rules)
    document = with_fragments(router.convert(with_keys(built, keys), options or Options()), fragments, settings.groups)
    report = _report(document, planned, inventory.findings, settings.dense_min_ctx)
    del planned_rows, items, planned, built  # checking takes as much memory again
    return _rendered(router, document, report)


def _rendered(router: Dialect, document: Document, report: Report) -> Generated:
    text = router.render(document)
    findings = (*router.verify(document, text), *unstable(text, router.render(document)))
    return Generated(text, document, report, findings)


def _all_planned(
    rows: Sequence[Row],
    chosen_ids: Mapping[tuple[str, str], str],
    planned_item: Callable[[Row], PlannedModel | Skipped | None],
    on_row: Callable[[int, int, str], None],
) -> list[PlannedModel | Skipped]:
    """Every row under an id that is still free, in order; rows that a person skips leave no trace.

    Ids that people chose go first: no file gets the name that another one was given.
    """
    items: list[PlannedModel | Skipped] = []
    taken: set[str] = set()
    taken.update(chosen_ids.values())
    for done, row in enumerate(rows, 1):
        on_row(done, len(rows), row.id)
        served = replace(row, id=chosen_ids.get((row.full_path, row.quant)) or free_name(row, taken))
        item = planned_item(served)
        if item is None:
            continue
        items.append(item)
        taken.add(served.id)
        if isinstance(item, PlannedModel):
            taken.update(plan.profile_id for plan in item.plans)
    return items


def _unless_skipped(
    overrides: Mapping[tuple[str, str], Override],
    planner: Planner,
    header_of: Callable[[str], Header | None],
    budget_of: BudgetOf,
    row: Row,
) -> PlannedModel | Skipped | None:
    override = overrides[row.full_path, row.quant]
    return None if override.skip else _planned(row, override, planner, header_of, budget_of)


def _chosen_ids(overrides: Mapping[tuple[str, str], Override]) -> dict[tuple[str, str], str]:
    """(path, quant) -> the id that somebody chose. The second of two with the same one is left out with a comment."""
    return {
        row: override.served_id.strip()
        for row, override in overrides.items()
        if override.served_id.strip() and not override.skip
    }


def _planned(
    row: Row,
    override: Override,
    planner: Planner,
    header_of: Callable[[str], Header | None],
    budget_of: BudgetOf,
) -> PlannedModel | Skipped:
    if not row.model_class:
        return _skipped(row, row.class_reason or "it has no class that can be served")
    try:
        header = header_of(row.full_path)
        plans = planner(row, header, override)
        budget = budget_of(override, row.model_class)
        return PlannedModel(row, header and kept_header(header), tuple(map(kept_plan, plans)), override, budget=budget)
    except QuartermasterError as error:
        return _skipped(row, str(error))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # A header that no rule foresaw must cost one comment, not the file of every other model.
        return _skipped(row, f"it could not be planned ({type(error).__name__}: {error})")


def _with_enhancers(items: Sequence[PlannedModel | Skipped]) -> list[PlannedModel | Skipped]:
    """Image and video models with the prompt rewriters that their names pair them with."""
    table = detect(item.row.id for item in items if isinstance(item, PlannedModel))
    return [
        replace(item, enhancers=pair_of(table, item.row.id)) if isinstance(item, PlannedModel) and table else item
        for item in items
    ]


def _skipped(row: Row, reason: str) -> Skipped:
    return Skipped(
        id=neutral(row.id), reason=neutral(printable(reason)), model_class=row.model_class, path=row.full_path
    )


def _lost_files(inventory: Inventory) -> Iterator[Skipped]:
    """Files that never became a row although they look like models."""
    rows = {row.full_path for row in inventory.rows}
    for finding in inventory.findings:
        if finding.kind in FILE_FINDINGS and finding.path not in rows:
            name = neutral(printable(os.path.basename(finding.path)))
            yield Skipped(name, neutral(finding.text), model_class="", path=finding.path)


def _report(
    document: Document, models: Sequence[PlannedModel], findings: Iterable[Finding], least_tokens: int
) -> Report:
    plans = {plan.profile_id: plan for model in models for plan in model.plans}
    budgets = {plan.profile_id: model.budget for model in models for plan in model.plans}
    entries = [
        _entry_report(entry, plans.get(entry.id), budgets.get(entry.id), least_tokens) for entry in document.entries
    ]
    skipped = [
        {"file": printable(item.path), "class": item.model_class, "reason": item.reason} for item in document.skipped
    ]
    emitted = {entry.id for entry in document.entries}
    warnings = [
        {"file": printable(model.row.full_path), "text": text}
        for model in models
        for plan in model.plans
        if plan.profile_id in emitted
        for text in plan_warnings(plan)
    ]
    explained = {item.path for item in document.skipped}
    warnings += [
        {"file": printable(finding.path), "text": finding.text}
        for finding in findings
        if finding.level != "info" and finding.path not in explained
    ]
    return Report(tuple(entries), tuple(skipped), tuple(warnings))


def _entry_report(entry: Entry, plan: Plan | None, budget: Budget | None, least_tokens: int) -> dict[str, Any]:
    """With `concerns` (V-10) and needs by device (V-11) where there are any: most entries have none."""
    concerns = plan_concerns(plan, least_tokens) if plan else ()
    devices = _device_gib(plan, budget) if plan and budget and len(budget.backend_ids) > 1 else {}
    return {
        "id": entry.id,
        "file": printable(entry.path),
        "class": entry.model_class,
        "est_vram_gib": to_gib(plan.est_vram_bytes) if plan else entry.fields.get("estVramGB", 0),
        "est_ram_gib": to_gib(plan.est_ram_bytes) if plan else entry.fields.get("estRamGB", 0),
        **({"concerns": list(concerns)} if concerns else {}),
        **({"est_device_gib": devices} if devices else {}),
    }


def _device_gib(plan: Plan, budget: Budget) -> dict[str, float]:
    """What a plan holds on each device, by the names that its server has for them."""
    held = [sum(sizes) for sizes in zip(*(term.device_bytes for term in plan.terms), strict=False)]
    if len(held) != len(budget.backend_ids):
        return {}
    return {name: to_gib(size) for name, size in zip(budget.backend_ids, held, strict=True) if size}
