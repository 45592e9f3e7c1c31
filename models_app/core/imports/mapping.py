"""Where each thing that a router's file says would go on one host (web.md 12.4).

An entry whose model file lies on a root becomes that model's settings: in two ways, of which a person picks one. The
second entry of a file becomes a variant. Everything that has no field is kept as a raw fragment; so is a whole entry
of which nothing here could write the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from models_app.core.fields import OVERRIDE_FIELDS, VARIANT_FIELDS
from models_app.core.imports.allotting import EXACT, RAW, SAME, SETTINGS, Here, Taken, needs_program
from models_app.core.imports.as_settings import as_settings, whole_text
from models_app.core.imports.beside_models import clashing, models_elsewhere, top_items
from models_app.core.imports.report import Item, Kind, Needs, Target
from models_app.core.imports.router_file import FileEntry, RouterFile
from models_app.core.launch.locks import table_of

MODELS, BACKENDS = "models", "backends"
"""Headings of the report, beside those of `beside_models`."""
PLANNED_HERE = frozenset({"estVramGB", "estRamGB"})
"""Figures that are computed here, whatever a file says."""
AS_FIELDS = frozenset({"ttl", "unlisted"})
OURS = "quartermaster"
"""In the metadata of an entry that we wrote."""


def mapped(file: RouterFile, here: Here, taken: Sequence[Taken]) -> tuple[Item, ...]:
    """Everything in the file as items, in its order; programs that are not registered first, other models last."""
    items = [*_programs(file, here, taken)]
    for one in taken:
        items += _entry_items(one, here)
    items += top_items(file, here.top)
    named = {one.model.path for one in taken if one.model is not None}
    served = [(model.path, model.served_id) for model in here.models.values() if not model.problem]
    items += models_elsewhere(served, named)
    return tuple(items)


def _programs(file: RouterFile, here: Here, taken: Sequence[Taken]) -> Iterator[Item]:
    seen: set[str] = set()
    for one in taken:
        program = one.entry.program
        if one.way != EXACT or one.model is None or not needs_program(one) or program in here.programs:
            continue
        if program not in seen:
            seen.add(program)
            target = Target(Kind.BACKEND, program)
            source = f"models.{one.entry.id}.cmd"
            value = {"kind": one.model.engine, "path": program}
            note = "An executable that the commands name; it is registered, and the models use it."
            yield Item(source, one.entry.line_of("cmd"), target, value, BACKENDS, note=note, needs=Needs.MANAGE)


def _entry_items(one: Taken, here: Here) -> Iterator[Item]:
    entry, model = one.entry, one.model
    source = f"models.{entry.id}"
    if one.way == RAW or model is None:
        note = f"Kept as it is written: {one.reason}." if one.reason else "Kept as it is written."
        whole = _item(entry, "", Target(Kind.FRAGMENT, entry.id), dict(entry.whole), RAW, needs=Needs.MANAGE)
        yield whole.noted(note)
        if model is not None and not model.problem:
            skip = Target(Kind.OVERRIDE, model.path, field="skip")
            note = "So that the same file is not served twice."
            yield Item(source, entry.line, skip, True, MODELS, entry.id, note=note)
        return
    if one.way == SAME:
        yield _item(entry, "cmd", Target(Kind.OVERRIDE, model.path), True).noted("The command is the one planned here.")
        if entry.id == model.served_id:
            yield from _identity_items(one)
    else:
        yield from _command_items(one, here)
        yield from _identity_items(one)
    if not one.variant:
        yield from _guard_items(one, here)
    yield from _key_items(one, here)


def _guard_items(one: Taken, here: Here) -> Iterator[Item]:
    """Whether an entry starts through the spawn guard, where that is not what would be written here anyway."""
    entry = one.entry
    ours = entry.id in here.guarded if entry.id in here.entries else here.guards
    if bool(entry.guard) != ours:
        note = "Its options follow from the settings of the host."
        yield _item(entry, "cmd", _target(one, "spawnGuard"), "on" if entry.guard else "off").noted(note)


def _item(entry: FileEntry, key: str, target: Target, value: Any, choice: str = "", **more: Any) -> Item:
    source = f"models.{entry.id}.{key}" if key else f"models.{entry.id}"
    return Item(source, entry.line_of(key) if key else entry.line, target, value, MODELS, entry.id, choice, **more)


def _target(one: Taken, key: str) -> Target:
    assert one.model is not None
    return Target(Kind.VARIANT if one.variant else Kind.OVERRIDE, one.model.path, one.variant, key)


def _command_items(one: Taken, here: Here) -> Iterator[Item]:
    """Both ways to take over a command."""
    entry, model = one.entry, one.model
    assert model is not None
    table = table_of(model.engine)
    if table is None:
        return
    text = whole_text(entry.argv, model.plumbing, table, here.rules)
    arguments = {"needs": Needs.ARGUMENTS}
    yield _item(entry, "cmd", _target(one, "customArgs"), text, EXACT, **arguments)
    yield _item(entry, "cmd", _target(one, "customArgsOnly"), True, EXACT, **arguments)
    catalogue = VARIANT_FIELDS if one.variant else OVERRIDE_FIELDS
    found = as_settings(table, entry.argv, model.argv, {item.key for item in catalogue}, here.rules)
    for key, value in found.values.items():
        yield _item(entry, "cmd", _target(one, key), value, SETTINGS)
    if found.text:
        yield _item(entry, "cmd", _target(one, "customArgs"), found.text, SETTINGS, **arguments)
    if needs_program(one) and not one.variant:
        yield _item(entry, "cmd", _target(one, "backend"), entry.program, needs=Needs.MANAGE)


def _identity_items(one: Taken) -> Iterator[Item]:
    entry, model = one.entry, one.model
    assert model is not None
    if one.variant or entry.id != model.served_id:
        yield _item(entry, "", _target(one, "servedId"), entry.id)
    if not one.variant:
        note = "" if "ttl" in entry.keys else "Not given in the entry."
        yield _item(entry, "ttl", _target(one, "ttlSec"), entry.ttl_seconds).noted(note)
    if entry.keys.get("unlisted") is True:
        yield _item(entry, "unlisted", _target(one, "unlisted"), True)


def _key_items(one: Taken, here: Here) -> Iterator[Item]:
    """Keys that no field stands for."""
    entry = one.entry
    _, ours = here.entries.get(entry.id, ((), {}))
    for key, value in entry.keys.items():
        if key in AS_FIELDS:
            continue
        value = _foreign(key, value)
        if value is None:
            continue
        target = Target(Kind.FRAGMENT, entry.id, field=key)
        nowhere = Target(Kind.NOWHERE, entry.id, field=key)
        if key in PLANNED_HERE:
            yield _item(entry, key, nowhere, value).noted("Planned here; the file's figure is not taken over.")
        elif one.way == SAME:
            yield from _beside_the_plan(entry, key, value, ours)
        else:
            yield _item(entry, key, target, value, EXACT, needs=Needs.MANAGE)
            for item in _beside_the_plan(entry, key, value, ours):
                yield replace(item, choice=SETTINGS)


def _beside_the_plan(entry: FileEntry, key: str, value: Any, ours: Mapping[str, Any]) -> Iterator[Item]:
    """A key of an entry that planning writes: it may already say so, or say something else."""
    target = Target(Kind.FRAGMENT, entry.id, field=key)
    clash = clashing(ours.get(key), value) if key in ours else None
    if key in ours and clash:
        note = f"Planning writes {', '.join(clash)} itself."
        yield _item(entry, key, Target(Kind.NOWHERE, entry.id, field=key), value).noted(note)
    else:
        yield _item(entry, key, target, value, needs=Needs.MANAGE)


def _foreign(key: str, value: Any) -> Any:
    """A key without what we ourselves wrote into it; None where nothing is left."""
    if key == "metadata" and isinstance(value, Mapping):
        return {name: inner for name, inner in value.items() if name != OURS} or None
    return value
