"""The two files as texts: fixed order, every text quoted, the same bytes for the same content.

Only what is set is written. Words such as `on` are quoted, so that a reader of YAML 1.1 keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from models_app.core.errors import ExportError
from models_app.core.export import scalars
from models_app.core.fields import SETTINGS_FIELDS
from models_app.core.settings import Override, record_to_mapping
from models_app.core.settings_files.files import GenerateFile
from models_app.core.state.sidecar import Sidecar, sidecar_to_mapping

FIRST = ("modelsRoot", "categoryRoots", "id", "name", "match", "quant", "model")
"""Keys that say what something is about."""
LAST = ("variants",)
FLOW_ITEMS = 12
"""A list of that many numbers or words stands on one line."""

Lines = Iterator[str]


def generate_text(file: GenerateFile, comments: Iterable[str] = ()) -> str:
    """A generate file. Raises `ExportError` for text that no YAML reader can be given."""
    own = record_to_mapping(file.own)
    order = [field.key for field in SETTINGS_FIELDS if field.key in file.settings]
    settings = {key: file.settings[key] for key in order} | own
    rows = [_ordered(record_to_mapping(row)) for row in file.overrides]
    return _text({"settings": _ordered(settings), "overrides": rows}, comments)


def sidecar_text(sidecar: Sidecar, comments: Iterable[str] = ()) -> str:
    """A sidecar; an empty one is a text without keys."""
    document = sidecar_to_mapping(sidecar)
    patch = document.get("settings")
    if patch:
        document["settings"] = {field.key: patch[field.key] for field in SETTINGS_FIELDS if field.key in patch}
    return _text({key: _ordered(value) for key, value in document.items()}, comments)


def row_document(row: Override) -> dict[str, Any]:
    """The set fields of a row, what it is about first."""
    document: dict[str, Any] = _ordered(record_to_mapping(row))
    return document


def map_text(document: Mapping[str, Any], comments: Iterable[str] = ()) -> str:
    """Any map as a text in the same style."""
    return _text(document, comments)


def _text(document: Mapping[str, Any], comments: Iterable[str]) -> str:
    lines = [f"# {scalars.one_line(comment)}" for comment in comments]
    for key, value in document.items():
        lines += ["", *_pair(key, value, 0)] if lines else _pair(key, value, 0)
    return "\n".join(lines) + "\n" if document else "\n".join([*lines, "{}"]) + "\n"


def _ordered(value: Any) -> Any:
    """Maps below with the keys of FIRST in front and those of LAST behind."""
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (FIRST.index(key) if key in FIRST else len(FIRST), key in LAST))
        return {key: _ordered(value[key]) for key in keys}
    return [_ordered(item) for item in value] if isinstance(value, list | tuple) else value


def _pair(key: str, value: Any, indent: int) -> Lines:
    label = f"{' ' * indent}{scalars.key(_sound(key))}:"
    if isinstance(value, Mapping) and value:
        yield label
        for name, inner in value.items():
            yield from _pair(name, inner, indent + 2)
    elif isinstance(value, list | tuple) and value and not _fits_a_line(value):
        yield label
        for item in value:
            yield from _item(item, indent + 2)
    elif isinstance(value, str):
        yield from f"{label} {scalars.long_text(_sound(value), indent)}".split("\n")
    else:
        yield f"{label} {_inline(value)}"


def _item(value: Any, indent: int) -> Lines:
    """One item of a block list; a map begins on the line of its dash."""
    if isinstance(value, Mapping) and value:
        lines = [line for name, inner in value.items() for line in _pair(name, inner, indent + 2)]
        yield f"{' ' * indent}- {lines[0].lstrip(' ')}"
        yield from lines[1:]
    else:
        yield f"{' ' * indent}- {_inline(value)}"


def _fits_a_line(value: list[Any] | tuple[Any, ...]) -> bool:
    return len(value) <= FLOW_ITEMS and all(isinstance(item, int | float) for item in value)


def _inline(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return scalars.number(value)
        case str():
            return scalars.quote(_sound(value))
        case Mapping():
            pairs = ", ".join(f"{scalars.quote(_sound(key))}: {_inline(inner)}" for key, inner in value.items())
            return "{" + pairs + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_inline, value)) + "]"
    raise TypeError(f"{type(value).__name__} cannot be written")


def _sound(text: str) -> str:
    if scalars.has_lone_surrogate(text):
        raise ExportError(f"{text!r} holds bytes that are not UTF-8, which no settings file can say")
    return text
