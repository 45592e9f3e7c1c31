"""Why two texts differ, from what went into each (web.md 5.13): settings, files, backends, budget, version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MOST = 40


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a host's settings as it stood."""

    values: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What went into one text. `files`: path -> a mark that changes with the file; `figures`: budgets in bytes."""

    sections: Mapping[str, Section] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    backends: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, int] = field(default_factory=dict)
    version: str = ""
    last_change: int = 0
    """The newest change of what is pinned that it saw; 0 for none."""

    @property
    def is_known(self) -> bool:
        return bool(self.version)


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason. Values are as they were stored; None where there was none."""

    kind: Literal["setting", "file", "backend", "budget", "version"]
    name: str
    before: Any = None
    after: Any = None
    section: str = ""
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Causes:
    """`host` may be behind any model's change; `files` are by path, for the models of that file."""

    host: tuple[Cause, ...] = ()
    files: Mapping[str, Cause] = field(default_factory=dict)
    known: bool = False


def inputs_from_json(data: Mapping[str, Any]) -> Inputs:
    sections = {name: Section(**item) for name, item in data.get("sections", {}).items()}
    rest = {key: value for key, value in data.items() if key != "sections"}
    return Inputs(sections=sections, **rest)


def causes_between(before: Inputs, after: Inputs) -> Causes:
    """What differs between the inputs of two texts; nothing where those of one were not kept."""
    if not before.is_known or not after.is_known:
        return Causes()
    host = [*_settings(before, after), *_simple("backend", before.backends, after.backends)]
    host += _simple("budget", before.figures, after.figures)
    if before.version != after.version:
        host.append(Cause("version", "version", before.version, after.version))
    files = {cause.name: cause for cause in _simple("file", before.files, after.files)}
    return Causes(tuple(host[:MOST]), files, known=True)


def _settings(before: Inputs, after: Inputs) -> Iterator[Cause]:
    for name in sorted({*before.sections, *after.sections}):
        old, new = (side.sections.get(name, Section()) for side in (before, after))
        for key in sorted({*old.values, *new.values}):
            was, value = old.values.get(key), new.values.get(key)
            if was != value:
                yield Cause("setting", key, was, value, name, new.by, new.at)


def _simple(
    kind: Literal["file", "backend", "budget"], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Cause]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield Cause(kind, name, before.get(name), after.get(name))
