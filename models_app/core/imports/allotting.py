"""Which entry of a router's file is about which model of a host, and how it can be taken over (web.md 12.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models_app.core.discovery.names import slugify
from models_app.core.imports.as_settings import chunks
from models_app.core.imports.router_file import FileEntry, RouterFile
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.tokens import POSIX
from models_app.core.state.variants import VISION

EXACT, SETTINGS, RAW, SAME = "exact", "settings", "raw", "same"
"""How an entry can be taken over. `same` is what this host would write already."""
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
    guarded: frozenset[str] = frozenset()
    """Served ids that this host would start through the spawn guard."""
    guards: bool = False
    """Its setting for models that say nothing."""
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
    has_base: bool = False
    """Another entry of the file becomes the model itself, and brings the program along."""


def allotted(file: RouterFile, here: Here) -> tuple[Taken, ...]:
    """Each entry with the model that it is about. Of several about one model, one is the base and others variants."""
    found: dict[str, Taken] = {}
    by_path: dict[str, list[FileEntry]] = {}
    by_name = _run_by_name(file, here)
    for entry in file.entries:
        model = here.model(entry.path)
        if same_command(entry, here):
            found[entry.id] = Taken(entry, SAME, model=model)
        elif reason := why_raw(entry, model) or _program_problem(entry, model, here, by_name):
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


def _run_by_name(file: RouterFile, here: Here) -> bool:
    """Whether entries run the program that is found by its name alone, because none is registered."""
    models = ((entry, here.model(entry.path)) for entry in file.entries)
    return any(
        model is not None and entry.program == model.program and not _is_path(entry.program) for entry, model in models
    )


def _is_path(program: str) -> bool:
    return "/" in program or "\\" in program


def _program_problem(entry: FileEntry, model: KnownModel | None, here: Here, by_name: bool) -> str:
    """Why the program of an entry cannot be that of its model here."""
    if model is None or entry.program in ("", model.program) or entry.program in here.programs:
        return ""
    if not _is_path(entry.program):
        return f"it runs {entry.program} by its name, and {model.program} is used here"
    if by_name:
        return f"registering {entry.program} would change the program of entries that run {model.program} by its name"
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
        yield Taken(entry, EXACT, model=model, variant=name, has_base=base is not None)


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


def needs_program(one: Taken) -> bool:
    """Whether the command begins with another executable than ours would."""
    return one.model is not None and bool(one.entry.program) and one.entry.program != one.model.program
