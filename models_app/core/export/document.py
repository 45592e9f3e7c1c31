"""A router's file as plain structure: what the dialects exchange, before it becomes text (config-yaml.md 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from models_app.core.launch.tokens import POSIX
from models_app.core.spawn_guard.options import GuardOptions

Fields = Mapping[str, Any]
"""Keys in written order. Values: bool, int, float, str, lists and mappings of these."""

NO_FIELDS: Fields = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Entry:
    """One served id. `command` are the lines under `cmd`; `fields` the other keys in written order."""

    id: str
    command: tuple[str, ...]
    fields: Fields = field(default_factory=lambda: NO_FIELDS)
    comments: tuple[str, ...] = ()
    model_class: str = ""
    base: str = ""
    """The id of the model's first entry: profiles of one file share it."""
    path: str = ""
    size_bytes: int = 0
    as_written: bool = False
    """A person wrote the whole command; nothing is added to the entry but what a field says and its estimates."""
    guard: GuardOptions | None = None
    """With which a router that places nothing itself starts it through the spawn guard; None: it does not."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A comment instead of an entry. `label` is what stands before the colon: `"<id>"`, `extra model "<name>"`."""

    id: str
    reason: str
    label: str = ""
    model_class: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Companion:
    """A file to be written beside the config (the model list of an audio.cpp server). `name` is relative to it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One file. `header` are the comment lines that may hold a time; everything else is its body."""

    dialect: str
    header: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """`NOTE: …` and `WARNING: …` lines of the body."""
    top: Fields = field(default_factory=lambda: NO_FIELDS)
    """Blocks before `models`."""
    models: tuple[Entry | Skipped, ...] = ()
    tail: Fields = field(default_factory=lambda: NO_FIELDS)
    """Blocks after `models`."""
    tail_comments: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    companions: tuple[Companion, ...] = ()
    word_rules: str = POSIX
    """How the host that runs the commands splits them into words."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(item for item in self.models if isinstance(item, Entry))

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(item for item in self.models if isinstance(item, Skipped))


def command_text(lines: Sequence[str]) -> str:
    """The value that a reader gets for `cmd`, without the newline that a folded block ends in."""
    return " ".join(lines)


def structure(document: Document) -> dict[str, Any]:
    """What a reader of the rendered text must find."""
    models = {entry.id: {"cmd": command_text(entry.command), **entry.fields} for entry in document.entries}
    return {**document.top, "models": models, **document.tail}


def texts_of(value: Any) -> Iterator[str]:
    """Every text inside a value, mapping keys included."""
    stack = [value]
    while stack:
        match stack.pop():
            case str() as text:
                yield text
            case Mapping() as mapping:
                stack.extend(mapping.keys())
                stack.extend(mapping.values())
            case list() | tuple() as items:
                stack.extend(items)
