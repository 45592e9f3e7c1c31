"""What a host would write now, for the readers of other people's files to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpus_app.models import Dialect, Host
from models_app import convert
from models_app.core import catalog
from models_app.core.catalog import Plan
from models_app.core.discovery.roots import path_key
from models_app.core.export import presets
from models_app.core.fields.groups import takes_arguments
from models_app.core.imports.allotting import Here, KnownModel, Taken, needs_program
from models_app.core.imports.report import Item, Kind
from models_app.core.imports.router_file import RouterFile, read_router_file
from models_app.core.launch.backends import engine_of, with_registry
from models_app.core.launch.compose import plumbing
from models_app.core.launch.locks import table_of
from models_app.core.launch.tokens import split_command
from models_app.core.settings import BackendEntry, Override, variant_from_mapping
from models_app.core.state.editor import put_variant
from models_app.models import Row
from models_app.services.arguments import rules_of
from models_app.services.building import planned_file
from models_app.services.check_facts import excesses_by_path
from models_app.services.editing import edited
from models_app.services.planning import HostFacts, HostPlanner, host_facts, stored_override


@dataclass
class HostNow:
    """One host at one moment: its rows, what it would write, and plans under other settings."""

    host: Host
    dialect: str
    facts: HostFacts
    rows: Mapping[str, Row]
    """By path."""
    ours: RouterFile
    text: str
    skipped: Mapping[str, str]
    """Path -> why its base is not planned."""
    headers: Callable[[str], catalog.Header | None]
    _bare: dict[str, KnownModel] = field(default_factory=dict)

    @classmethod
    def of(cls, host: Host, dialect: str) -> HostNow:
        rows = list(Row.objects.filter(host=host).exclude(state=Row.State.MISSING))
        facts = replace(host_facts(host), excesses=excesses_by_path(host, rows))
        headers = convert.header_lookup(host)
        skipped: dict[str, str] = {}

        def note(row: catalog.Row, _header: Any, plans: Sequence[Plan], _backend: Any) -> None:
            if plans and plans[0].skip_reason:
                skipped[row.full_path] = plans[0].skip_reason

        planner = HostPlanner(facts, headers, note)
        generated = planned_file(host, map(convert.core_row, rows), facts, planner, dialect=dialect)
        ours = read_router_file(generated.text.encode("utf-8", "surrogatepass"), dialect, rules_of(host))
        by_path = {row.path: row for row in rows}
        return cls(host, dialect, facts, by_path, ours, generated.text, skipped, headers)

    def key_of(self, path: str) -> str:
        return path_key(path, self.host.os_family)

    def here(self, wanted: Iterable[str]) -> Here:
        """For a reader; models whose paths are wanted are planned without anything pinned as well."""
        keys = {self.key_of(path) for path in wanted if path}
        models = {self.key_of(row.path): self._model(row, self.key_of(row.path) in keys) for row in self.rows.values()}
        programs = {entry.path: entry.id for entry in self.facts.settings.backends}
        entries = {entry.id: (entry.argv, entry.keys) for entry in self.ours.entries}
        return Here(
            models,
            entries,
            self.ours.top,
            programs,
            self.key_of,
            rules_of(self.host),
            guarded=frozenset(entry.id for entry in self.ours.entries if entry.guard),
            guards=self.facts.settings.spawn_guard and self.dialect == Dialect.LLAMA_SWAP,
            ordered=self.dialect != presets.SLUG,
        )

    def _model(self, row: Row, wanted: bool) -> KnownModel:
        override = stored_override(self.facts, row)
        problem = "left out here" if override.skip else row.class_reason if not row.model_class else ""
        problem = self.skipped.get(row.path, problem)
        if not wanted or (problem and not override.skip):
            return KnownModel(row.path, row.served_id, problem=problem)
        return self._planned_bare(row, override)

    def _planned_bare(self, row: Row, override: Override) -> KnownModel:
        engine = engine_of(self.facts.settings, override, row.model_class)
        planner = HostPlanner(self.facts, self.headers)
        plan = planner(self._core(row), self.headers(row.path), Override())[0]
        table, rules = table_of(engine), rules_of(self.host)
        if plan.skip_reason or not plan.lines:
            return KnownModel(row.path, row.served_id, engine, problem=plan.skip_reason or "it cannot be planned")
        lines = plumbing(table, plan.lines, rules) if table is not None else []
        own = [variant.name for variant in override.variants]
        words = tuple(word for line in lines[1:] for word in split_command(line, rules))
        return KnownModel(
            row.path,
            row.served_id,
            engine,
            plan.argv,
            words,
            takes_arguments(row.model_class, engine),
            tuple(own),
        )

    def _core(self, row: Row) -> catalog.Row:
        return replace(convert.core_row(row), id=row.served_id)

    def command(self, one: Taken, items: Iterable[Item], programs: Mapping[str, str]) -> tuple[str, ...]:
        """The words of an entry once these items are taken over; () where it could not be planned."""
        assert one.model is not None
        row = self.rows[one.model.path]
        header = self.headers(row.path)
        override = _with(row, stored_override(self.facts, row), items, header.is_moe if header else None)
        facts, override = self._with_program(one, override, programs)
        plans = HostPlanner(facts, self.headers)(self._core(row), header, override)
        return next((plan.argv for plan in plans if plan.profile_id == one.entry.id), ())

    def _with_program(self, one: Taken, override: Override, programs: Mapping[str, str]) -> tuple[HostFacts, Override]:
        if (one.variant and not one.has_base) or not needs_program(one) or one.model is None:
            return self.facts, override
        path = one.entry.program
        known = programs.get(path, path)
        entries = [*self.facts.settings.backends]
        if path not in programs:
            entries.append(BackendEntry(id=path, kind=one.model.engine, name=path, path=path))
        settings = with_registry(self.facts.settings, entries)
        return replace(self.facts, settings=settings), replace(override, backend=known)


def _with(row: Row, override: Override, items: Iterable[Item], is_moe: bool | None) -> Override:
    """The override of a row after some items of one entry."""
    own: dict[str, Any] = {}
    variants: dict[str, dict[str, Any]] = {}
    for item in items:
        if item.target.kind == Kind.OVERRIDE and item.target.field and item.target.field != "backend":
            own[item.target.field] = item.value
        elif item.target.kind == Kind.VARIANT:
            variants.setdefault(item.target.variant, {})[item.target.field] = item.value
    after = edited(row, override, own, is_moe) if own else override
    for name, values in variants.items():
        after = put_variant(after, replace(variant_from_mapping(values), name=name))
    return after


def items_of(items: Iterable[Item], group: str, choice: str) -> list[Item]:
    """The items of one entry that one way of taking it over consists of."""
    return [item for item in items if item.group == group and item.choice in ("", choice)]
