"""Where each thing that a router's file says would go on one host (web.md 12.4).

An entry whose model file lies on a root becomes that model's settings: in two ways, of which a person picks one. The
second entry of a file becomes a variant. Everything that has no field is kept as a raw fragment; so is a whole entry
of which nothing here could write the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from models_app.core.discovery.names import slugify
from models_app.core.fields import OVERRIDE_FIELDS, VARIANT_FIELDS
from models_app.core.imports.as_settings import as_settings, chunks, whole_text
from models_app.core.imports.beside_models import clashing, models_elsewhere, top_items
from models_app.core.imports.report import Item, Kind, Needs, Target
from models_app.core.imports.router_file import FileEntry, RouterFile
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.locks import table_of
from models_app.core.launch.tokens import POSIX
from models_app.core.state.variants import VISION

EXACT, SETTINGS, RAW, SAME = "exact", "settings", "raw", "same"
"""How an entry can be taken over. `same` is what this host would write already."""
MODELS, BACKENDS = "models", "backends"
"""Headings of the report, beside those of `beside_models`."""
PLANNED_HERE = frozenset({"estVramGB", "estRamGB"})
"""Figures that are computed here, whatever a file says."""
AS_FIELDS = frozenset({"ttl", "unlisted"})
OURS = "quartermaster"
"""In the metadata of an entry that we wrote."""
NAME_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model of the host. `argv` is the command of its base entry with nothing pinned, `here` as things are."""

    path: str
    served_id: str
    engine: str = ""
    argv: tuple[str, ...] = ()
    plumbing: tuple[str, ...] = ()
    """The words behind the program that name model and port, as we write them."""
    takes_text: bool = False
    variants: tuple[str, ...] = ()
    """Names that are taken."""
    problem: str = ""
    """Why no command can be planned."""

    @property
    def program(self) -> str:
        return self.argv[0] if self.argv else ""


@dataclass(frozen=True, slots=True)
class Here:
    """What this host would write now in the dialect of the file."""

    models: Mapping[str, KnownModel]
    """By path, as the host's system compares paths."""
    entries: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = field(default_factory=dict)
    """Served id -> words and other keys."""
    top: Mapping[str, Any] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    """Path of a registered executable -> its id."""
    key_of: Callable[[str], str] = str
    rules: str = POSIX
    ordered: bool = True
    """The order of a command's flags counts; in presets it does not."""

    def model(self, path: str) -> KnownModel | None:
        return self.models.get(self.key_of(path)) if path else None


@dataclass(frozen=True, slots=True)
class Taken:
    """What becomes of one entry: `way` is how it can be taken over at best."""

    entry: FileEntry
    way: str
    reason: str = ""
    model: KnownModel | None = None
    variant: str = ""
    """The name of the variant that it becomes; "" for the model itself."""


def allotted(file: RouterFile, here: Here) -> tuple[Taken, ...]:
    """Each entry with the model that it is about. Of several about one model, one is the base and others variants."""
    found: dict[str, Taken] = {}
    by_path: dict[str, list[FileEntry]] = {}
    for entry in file.entries:
        model = here.model(entry.path)
        if same_command(entry, here):
            found[entry.id] = Taken(entry, SAME, model=model)
        elif reason := why_raw(entry, model):
            found[entry.id] = Taken(entry, RAW, reason, model)
        elif model is not None:
            by_path.setdefault(model.path, []).append(entry)
    known = {model.path: model for model in here.models.values()}
    for path, entries in by_path.items():
        taken_names = {entry.entry.id for entry in found.values() if entry.model and entry.model.path == path}
        found |= {item.entry.id: item for item in _of_one_model(entries, known[path], bool(taken_names))}
    return tuple(found[entry.id] for entry in file.entries)


def same_command(entry: FileEntry, here: Here) -> bool:
    words, _ = here.entries.get(entry.id, ((), {}))
    if not entry.argv or not words:
        return False
    if here.ordered:
        return words == entry.argv
    return sorted(chunk.words for chunk in chunks(LLAMA, words)) == sorted(
        chunk.words for chunk in chunks(LLAMA, entry.argv)
    )


def why_raw(entry: FileEntry, model: KnownModel | None) -> str:
    """Why an entry is kept as it is, "" where it can become settings."""
    if entry.problem:
        return entry.problem
    if not entry.path:
        return "its command names no model file"
    if model is None:
        return "its model file lies in no folder of this host"
    if model.problem:
        return f"its model cannot be planned: {model.problem}"
    if not model.takes_text:
        return "its server takes no launch arguments here"
    return ""


def _of_one_model(entries: Sequence[FileEntry], model: KnownModel, base_is_there: bool) -> Iterator[Taken]:
    base = None if base_is_there else next((one for one in entries if one.id == model.served_id), entries[0])
    names = {name.lower() for name in model.variants} | {VISION}
    if base is not None:
        yield Taken(base, EXACT, model=model)
    for entry in entries:
        if entry is base:
            continue
        if base is not None and (entry.ttl_seconds, entry.program) != (base.ttl_seconds, base.program):
            reason = f"idle time or program differ from those of {base.id}, which has the same model file"
            yield Taken(entry, RAW, reason, model)
            continue
        name = variant_name(entry.id, base.id if base else model.served_id, names)
        names.add(name.lower())
        yield Taken(entry, EXACT, model=model, variant=name)


def variant_name(served_id: str, base_id: str, taken: set[str]) -> str:
    """A name that no other variant has: the part of the id behind the base's, else the id itself."""
    rest = served_id.removeprefix(f"{base_id}-") if served_id != base_id else served_id
    name = slugify(rest)[:NAME_CHARACTERS] or "variant"
    number = 1
    wanted = name
    while wanted.lower() in taken:
        number += 1
        wanted = f"{name[: NAME_CHARACTERS - len(str(number)) - 1]}-{number}"
    return wanted


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


def needs_program(one: Taken) -> bool:
    """Whether the command begins with another executable than ours would."""
    return one.model is not None and bool(one.entry.program) and one.entry.program != one.model.program


def _entry_items(one: Taken, here: Here) -> Iterator[Item]:
    entry, model = one.entry, one.model
    source = f"models.{entry.id}"
    if one.way == RAW or model is None:
        yield _item(entry, "", Target(Kind.FRAGMENT, entry.id), dict(entry.whole), RAW, needs=Needs.MANAGE).noted(
            f"Kept as it is written: {one.reason}."
        )
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
    yield from _key_items(one, here)


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
