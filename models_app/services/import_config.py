"""Reading a router's file for an import: what it says, where each thing would go, and what is here already."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from models_app.core.export.fragments import ADDED, form_of
from models_app.core.imports.allotting import EXACT, SAME, SETTINGS, Here, Taken, allotted
from models_app.core.imports.beside_models import GROUPING, SECRET_TOP
from models_app.core.imports.mapping import mapped
from models_app.core.imports.meaning import meaning_of
from models_app.core.imports.report import Item, Kind, Status, Target, item_to_json, judged
from models_app.core.imports.router_file import dialect_of, read_router_file
from models_app.models import ImportBatch
from models_app.services.arguments import rules_of
from models_app.services.import_current import Stored, same_value
from models_app.services.import_facts import HostNow, items_of
from models_app.services.import_keys import sealed_keys
from quartermaster_site.access.redaction import redact
from quartermaster_site.jobs.control import ControlReporter

MOST_FINDINGS = 200


def read_config(batch: ImportBatch, data: bytes, report: ControlReporter) -> dict[str, Any]:
    """The report of a router's file. Raises `ImportFailed` where it cannot be read."""
    report.progress("Reading", 0, 2)
    batch.dialect = batch.dialect or dialect_of(batch.name, data)
    batch.save(update_fields=["dialect"])
    rules = rules_of(batch.host)
    found, meaning = read_router_file(data, batch.dialect, rules), meaning_of(data, batch.dialect, rules)
    report.progress("Comparing", 1, 2)
    now = HostNow.of(batch.host, batch.dialect)
    here = now.here(entry.path for entry in found.entries)
    taken = allotted(found, here)
    items = _judged(batch, now, here, taken, sealed_keys(batch.host, mapped(found, here, taken)))
    return {
        "items": [item_to_json(item) for item in items],
        "models": {one.entry.id: _model(one, now, items, report, count) for count, one in enumerate(taken)},
        "findings": [asdict(item) for item in found.findings[:MOST_FINDINGS]],
        "meaning": without_secrets(meaning),
    }


def _model(one: Taken, now: HostNow, items: Iterable[Item], report: ControlReporter, count: int) -> dict[str, Any]:
    """An entry as the page shows it: its command, and what would become of it."""
    report.progress("Planning", count, unit="models", current=one.entry.id)
    row = now.rows.get(one.model.path) if one.model else None
    shown: dict[str, Any] = {
        "line": one.entry.line,
        "way": one.way,
        "reason": one.reason,
        "path": one.entry.path,
        "variant": one.variant,
        "row": row.pk if row else None,
        "before": list(one.entry.argv),
        "after": {},
    }
    if one.way == EXACT:
        programs = {entry.path: entry.id for entry in now.facts.settings.backends}
        for choice in (EXACT, SETTINGS):
            own = items_of(items, one.entry.id, choice)
            shown["after"][choice] = list(now.command(one, own, programs))
    return shown


def _judged(
    batch: ImportBatch, now: HostNow, here: Here, taken: Iterable[Taken], items: Iterable[Item]
) -> tuple[Item, ...]:
    """The items with their status. What planning writes anyway counts only where planning goes on to write it."""
    stored = Stored(batch.host, now.facts, now.rows, form_of(batch.dialect))
    same = {one.entry.id for one in taken if one.way == SAME}

    def planned(target: Target) -> Any:
        found = stored.value(target)
        return _written(here, target) if found is None else found

    def judge(item: Item) -> Item:
        if item.target.kind == Kind.FRAGMENT and not item.group and holds_secret(item.source, item.value):
            item = replace(item, secret=True)
        as_planned = item.choice == SETTINGS or item.group in same or not item.group
        found = judged([item], planned if as_planned else stored.value, same_value)[0]
        if found.status == Status.CONFLICT and item.source in GROUPING and stored.value(item.target) is None:
            # Planned groups are nobody's choice.
            found = replace(found, status=Status.NEW, ours=None)
        in_force = stored.in_force(item.target)
        if found.status == Status.NEW and in_force is not None and same_value(item.target, item.value, in_force):
            return replace(found, status=Status.SAME)
        return found

    return tuple(map(judge, items))


def _written(here: Here, target: Target) -> Any:
    """What the file of this host says for a key now; a list that can be added to is in nobody's way."""
    if target.kind != Kind.FRAGMENT or target.field in ADDED:
        return None
    keys = here.entries.get(target.subject, ((), {}))[1] if target.subject else here.top
    return keys.get(target.field)


def without_secrets(meaning: Mapping[str, Any]) -> dict[str, Any]:
    """The meaning with what holds keys replaced by hashes, which are enough to compare."""
    top = {name: _hash(value) if holds_secret(name, value) else value for name, value in meaning["top"].items()}
    # Texts hold placeholders, and a key of the host's worker among them: that there are keys is what can be compared.
    top |= {name: "keys" for name in SECRET_TOP if meaning["top"].get(name)}
    return {**meaning, "top": top}


def holds_secret(name: str, value: Any) -> bool:
    """Whether a key beside the models holds key material somewhere."""
    return bool(value) and (name in SECRET_TOP or redact({name: value}) != {name: value})


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()
