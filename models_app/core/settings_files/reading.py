"""A YAML tree as the map of a record class: words in the type of their field, every complaint with its line.

Nothing is dropped silently: a key that no field reads is a remark of its own. A value that cannot be taken is left out
of the map and is an error, so a caller that goes on in spite of it knows what it lacks.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from difflib import get_close_matches
from typing import Any

from models_app.core.errors import SettingsError
from models_app.core.export.load import Node
from models_app.core.fields import OVERRIDE_FIELDS, SETTINGS_FIELDS
from models_app.core.settings.codec import shape, typed

Path = tuple[str | int, ...]

MAX_REMARKS = 1000
"""Of each kind and file: the rest would say the same."""
_YES = frozenset({"true", "yes", "on", "y"})
_NO = frozenset({"false", "no", "off", "n"})

WORD_KEYS = frozenset(field.key for field in (*SETTINGS_FIELDS, *OVERRIDE_FIELDS) if "on" in field.choices)
"""Text fields whose words a YAML 1.1 writer turns into true and false: `mmap: on` and `mmap: true` are the same."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about one place of a file. `line` counts from 1; 0 is the file as a whole."""

    line: int
    path: Path
    text: str

    @property
    def where(self) -> str:
        """The place in words: `overrides[2].flashAttn`."""
        return place_text(self.path)

    def __str__(self) -> str:
        where = f"{self.where}: " if self.path else ""
        return f"line {self.line}: {where}{self.text}" if self.line else f"{where}{self.text}"


def place_text(path: Path) -> str:
    """A path of keys and positions in words."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


@dataclass(slots=True)
class Remarks:
    """What one file gave reason to say."""

    errors: list[Remark] = field(default_factory=list)
    unknown: list[Remark] = field(default_factory=list)

    def wrong(self, node: Node, path: Path, text: str) -> None:
        if len(self.errors) < MAX_REMARKS:
            self.errors.append(Remark(node.line, path, text))

    def not_known(self, line: int, path: Path, known: Iterable[str]) -> None:
        close = get_close_matches(str(path[-1]), list(known), n=1)
        hint = f"; is {close[0]} meant?" if close else ""
        if len(self.unknown) < MAX_REMARKS:
            self.unknown.append(Remark(line, path, f"no setting has this name{hint}"))


def record_document(
    kind: type[Any], node: Node, path: Path, remarks: Remarks, *, keys: Iterable[str] | None = None
) -> dict[str, Any]:
    """The set keys of a record in the types of its fields; `keys` names those that count where not all do."""
    if node.value is None:
        return {}
    if not isinstance(node.value, dict):
        remarks.wrong(node, path, "expected a map of fields")
        return {}
    fields = shape(kind)
    known = fields.keys() if keys is None else [key for key in fields if key in set(keys)]
    document: dict[str, Any] = {}
    for key, child in node.pairs.items():
        place = (*path, key)
        if key not in known:
            remarks.not_known(node.key_line(key), place, known)
        elif child.value is not None:
            _put(document, key, fields[key][1], child, place, remarks)
    return document


def _put(document: dict[str, Any], key: str, annotation: Any, node: Node, path: Path, remarks: Remarks) -> None:
    before = len(remarks.errors)
    value = _value(annotation, node, path, remarks)
    if len(remarks.errors) == before and value is not None:
        document[key] = value


def _value(annotation: Any, node: Node, path: Path, remarks: Remarks) -> Any:
    """A value in the type of its field; whoever calls looks whether an error was noted on the way."""
    if isinstance(annotation, types.UnionType):
        annotation = next(item for item in typing.get_args(annotation) if item is not type(None))
    origin = typing.get_origin(annotation)
    if origin is tuple:
        return _items(typing.get_args(annotation)[0], node, path, remarks)
    if origin is not None:
        return _mapping(typing.get_args(annotation)[1], node, path, remarks)
    if is_dataclass(annotation):
        return record_document(typing.cast(type[Any], annotation), node, path, remarks)
    return _scalar(annotation, node, path, remarks)


def _items(annotation: Any, node: Node, path: Path, remarks: Remarks) -> list[Any] | None:
    if not isinstance(node.value, list):
        remarks.wrong(node, path, "expected a list")
        return None
    items = []
    for index, child in enumerate(node.items):
        if child.value is None:
            remarks.wrong(child, (*path, index), "this item is blank")
        else:
            items.append(_value(annotation, child, (*path, index), remarks))
    return items


def _mapping(annotation: Any, node: Node, path: Path, remarks: Remarks) -> dict[str, Any] | None:
    if not isinstance(node.value, dict):
        remarks.wrong(node, path, "expected a map")
        return None
    document: dict[str, Any] = {}
    for key, child in node.pairs.items():
        if child.value is not None:
            _put(document, key, annotation, child, (*path, key), remarks)
    return document


def _scalar(annotation: Any, node: Node, path: Path, remarks: Remarks) -> Any:
    key = str(next((step for step in reversed(path) if isinstance(step, str)), ""))
    try:
        return typed(annotation, _meant(annotation, node, key), "")
    except SettingsError as error:
        remarks.wrong(node, path, str(error).removeprefix(": "))
        return None


def _meant(annotation: Any, node: Node, key: str) -> Any:
    """What a scalar says to its field: a text is taken as it stands (`12:30`, `007`), a switch knows yes and no."""
    if isinstance(node.value, dict | list):
        return node.value
    word = node.raw.strip().lower()
    if annotation is bool and word in _YES | _NO:
        return word in _YES
    if annotation is str and key in WORD_KEYS and word in _YES | _NO:
        return "on" if word in _YES else "off"
    return node.raw if annotation is str else node.value


def own_keys(document: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The part of a map under these keys."""
    wanted = set(keys)
    return {key: value for key, value in document.items() if key in wanted}
