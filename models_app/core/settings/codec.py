"""Between the YAML keys of a file and the value types. Shapes are checked, ranges are not: what a file says is kept.

Reading is lenient (state.md 1): unknown keys are ignored, null, 0, "" and false are "not set" except where the
catalogue says that they are values. A value of the wrong type raises `SettingsError` with the key.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, TypeVar

from models_app.core.errors import SettingsError
from models_app.core.settings.fleet import Settings
from models_app.core.settings.overrides import Override, Variant

MAX_INTEGER = 2**63 - 1
MAX_ITEMS = 100_000
MAX_TEXT = 1 << 20

Record = TypeVar("Record")
Document = Mapping[str, Any]


def key_of(attribute: str) -> str:
    """The YAML key of an attribute: `target_vram_gb` -> `targetVramGB`."""
    head, *rest = attribute.split("_")
    return head + "".join(part.upper() if part in ("gb", "mb") else part.capitalize() for part in rest)


_SHAPES: dict[type[Any], dict[str, tuple[str, Any]]] = {}


def shape(kind: type[Any]) -> Mapping[str, tuple[str, Any]]:
    """YAML key -> (attribute, type annotation) of a record class, worked out once."""
    if kind not in _SHAPES:
        hints = typing.get_type_hints(kind)
        _SHAPES[kind] = {key_of(item.name): (item.name, hints[item.name]) for item in fields(kind)}
    return _SHAPES[kind]


def unknown_keys(kind: type[Any], document: Document) -> tuple[str, ...]:
    """Keys of `document` that no field of `kind` reads, sorted."""
    return tuple(sorted(str(key) for key in document if key not in shape(kind)))


def record_from_mapping(kind: type[Record], document: Document, where: str = "") -> Record:
    """A record of class `kind` from its YAML form."""
    if not isinstance(document, Mapping):
        raise SettingsError(f"{where or kind.__name__}: expected a map of fields")
    values: dict[str, Any] = {}
    for key, (attribute, annotation) in shape(kind).items():
        if document.get(key) is not None:
            values[attribute] = typed(annotation, document[key], f"{where}.{key}" if where else key)
    return kind(**values)


def settings_from_mapping(document: Document) -> Settings:
    """Effective settings: what is absent or null has its default, a given 0 stays 0."""
    return record_from_mapping(Settings, document)


def override_from_mapping(document: Document) -> Override:
    return record_from_mapping(Override, document)


def variant_from_mapping(document: Document) -> Variant:
    return record_from_mapping(Variant, document)


def record_to_mapping(record: Any, *, sparse: bool = True) -> dict[str, Any]:
    """The YAML form of a record. Sparse leaves out what equals the default of its class."""
    document: dict[str, Any] = {}
    for item in fields(record):
        value = getattr(record, item.name)
        if not sparse or value != _default(item):
            document[key_of(item.name)] = _plain(value, sparse)
    return document


def _default(item: Field[Any]) -> Any:
    if item.default is not MISSING:
        return item.default
    return None if item.default_factory is MISSING else item.default_factory()


def _plain(value: Any, sparse: bool) -> Any:
    if is_dataclass(value):
        return record_to_mapping(value, sparse=sparse)
    if isinstance(value, tuple):
        return [_plain(item, sparse) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item, sparse) for key, item in value.items()}
    return value


def typed(annotation: Any, value: Any, where: str) -> Any:
    """`value` as the type of a field. Raises `SettingsError` with the place."""
    if isinstance(annotation, types.UnionType):
        return typed(next(item for item in typing.get_args(annotation) if item is not type(None)), value, where)
    origin = typing.get_origin(annotation)
    if origin is tuple:
        return _items(typing.get_args(annotation)[0], value, where)
    if origin is not None:
        return _mapping(typing.get_args(annotation)[1], value, where)
    if annotation in _SCALARS:
        return _SCALARS[annotation](value, where)
    if is_dataclass(annotation):
        return record_from_mapping(typing.cast(type[Any], annotation), value, where)
    return value


def _items(annotation: Any, value: Any, where: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise SettingsError(f"{where}: expected a list")
    if len(value) > MAX_ITEMS:
        raise SettingsError(f"{where}: more than {MAX_ITEMS:,} items")
    return tuple(typed(annotation, item, f"{where}[{index}]") for index, item in enumerate(value))


def _mapping(annotation: Any, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{where}: expected a map")
    if len(value) > MAX_ITEMS:
        raise SettingsError(f"{where}: more than {MAX_ITEMS:,} keys")
    return {
        _text(key, where): typed(annotation, item, f"{where}.{key}") for key, item in value.items() if item is not None
    }


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SettingsError(f"{where}: expected text")
    text = str(value)
    if len(text) > MAX_TEXT:
        raise SettingsError(f"{where}: longer than {MAX_TEXT:,} characters")
    return text


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{where}: expected true or false")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingsError(f"{where}: expected a number")
    if abs(value) > MAX_INTEGER or not math.isfinite(value):
        raise SettingsError(f"{where}: the number is out of range")
    return float(value)


def _integer(value: Any, where: str) -> int:
    number = _number(value, where)
    if number != int(number):
        raise SettingsError(f"{where}: expected a whole number")
    return int(value)


_SCALARS: dict[Any, Any] = {str: _text, bool: _flag, int: _integer, float: _number}
