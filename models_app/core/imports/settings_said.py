"""A generate file and its sidecar side by side: what each says about a key, in which line, and which of them counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from models_app.core.imports.report import Item, Kind, Needs, Target
from models_app.core.settings_files.files import GenerateFile, ReadFile
from models_app.core.settings_files.reading import place_text
from models_app.core.state.sidecar import Sidecar, sidecar_to_mapping

ELLIPSIS = "…"
"""Ends what an export has masked."""
ARGUMENT_KEYS = frozenset({"customArgs", "customArgsOnly", "customArgsOff", "extraArgs"})
MASKED = "The secret itself is not in the file: it was masked by an export. What is set here stays."


@dataclass(frozen=True, slots=True)
class Said:
    """A value, and which line of which file says it."""

    source: str
    line: int
    value: Any


class Files:
    """Both files of one import; one that is missing says nothing."""

    def __init__(self, file: ReadFile[GenerateFile] | None, sidecar: ReadFile[Sidecar] | None) -> None:
        self.file, self.sidecar = file, sidecar
        self.settings: Mapping[str, Any] = file.content.settings if file else {}
        document = sidecar_to_mapping(sidecar.content) if sidecar else {}
        given = sidecar.tree.pairs if sidecar else {}
        self.top = {key: value for key, value in document.items() if key in given}
        """Keys that stand at the top of the sidecar."""
        self.patch: Mapping[str, Any] = self.top.get("settings") or {}

    def in_file(self, *path: str | int) -> Said | None:
        """What the settings of the generate file say at a path."""
        value = _at(self.settings, path)
        if self.file is None or value is None:
            return None
        place = ("settings", *path)
        return Said(place_text(place), self.file.line_of(place), value)

    def in_sidecar(self, *path: str | int) -> Said | None:
        value = _at(self.top, path)
        if self.sidecar is None or value is None:
            return None
        return Said(f"sidecar {place_text(path)}", self.sidecar.line_of(path), value)

    def counting(self, key: str, own: Said | None, section: str) -> tuple[Said | None, tuple[Item, ...]]:
        """What counts for a key of the settings, and the item of the line that does not."""
        other = self.in_file(key)
        if own is None or other is None:
            return own or other, ()
        note = f"The sidecar says something about this in line {own.line:,}, and that counts."
        return own, (lost(other, section, note),)


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        else:
            value = value[step] if isinstance(value, list | tuple) and step < len(value) else None
    return value


def lost(said: Said, section: str, note: str, *, secret: bool = False) -> Item:
    """Something that cannot be taken over, and why."""
    return Item(said.source, said.line, Target(Kind.NOWHERE), said.value, section, note=note, secret=secret)


def field_items(said: Said, target: Target, section: str, group: str) -> Iterator[Item]:
    """One item for each field of a row or variant; `target` names it without a field."""
    for key, value in said.value.items():
        at = Said(f"{said.source}.{key}", said.line, value)
        is_text = key in ARGUMENT_KEYS
        if is_text and isinstance(value, str) and ELLIPSIS in value:
            yield lost(at, section, MASKED, secret=True)
        else:
            place = Target(target.kind, target.subject, target.variant, key)
            needs = Needs.ARGUMENTS if is_text else Needs.EDIT
            yield Item(at.source, at.line, place, value, section, group, needs=needs)


def variant_items(said: Said, target: Target, section: str, group: str) -> Iterator[Item]:
    """The fields of a variant; of one that sets nothing, that it is there."""
    if said.value:
        yield from field_items(said, target, section, group)
    else:
        yield Item(said.source, said.line, target, True, section, group)
