"""Headers as JSON: in the cache, in job messages, in database rows, and as `inspect` prints them.

What comes in is untrusted: a record may have been written by a host that someone else controls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from models_app.core.catalog import Header, LayerWeights, WeightTable
from models_app.core.errors import RecordError
from models_app.core.readers import _validate as check
from models_app.core.readers import limits
from models_app.core.readers.weights import MAX_BLOCKS, MAX_GLOBALS

_FORMATS = ("gguf", "safetensors", "hf", "ggml")
_DEFAULT = Header()
_NESTED = frozenset({"extra", "weights", "tensor_shapes", "data_complete"})
_TEXT_TUPLES = frozenset({"effort_levels", "warnings"})
_PLAIN = tuple(field.name for field in fields(Header) if field.name not in _NESTED)
_LAYER_COLUMNS = tuple(field.name for field in fields(LayerWeights))
_LAYER_KINDS = tuple(type(getattr(LayerWeights(), name)) for name in _LAYER_COLUMNS)
_NOT_META = frozenset({"format", "weights", "tensor_shapes", "warnings", "file_size_bytes"})
_MAX_DIMENSIONS = 64


def header_to_json(header: Header) -> dict[str, Any]:
    """A record of plain JSON values; facts that are absent are left out."""
    record: dict[str, Any] = {"format": header.format}
    for name in _PLAIN:
        value = getattr(header, name)
        if value != getattr(_DEFAULT, name):
            record[name] = list(value) if isinstance(value, tuple) else value
    if header.data_complete is not None:
        record["data_complete"] = header.data_complete
    if header.extra:
        record["extra"] = _plain_mapping(header.extra)
    if header.tensor_shapes:
        record["tensor_shapes"] = _plain_mapping(header.tensor_shapes)
    if header.weights != _DEFAULT.weights:
        record["weights"] = _weights_to_json(header.weights)
    return record


def header_from_json(record: object) -> Header:
    """The header of a record. Raises RecordError for anything that `header_to_json` could not have written."""
    source = check.mapping(record, "record", len(_PLAIN) + len(_NESTED))
    facts: dict[str, Any] = {}
    for name, value in source.items():
        reader = _READERS.get(name)
        if reader is None:
            raise RecordError(f"unknown fact {str(name)[:40]!r}")
        facts[name] = reader(value, name)
    if facts.get("format", "gguf") not in _FORMATS:
        raise RecordError("unknown format")
    return Header(**facts)


def header_meta(header: Header) -> dict[str, Any]:
    """The facts under the names of headers.md 5 and 6, as `inspect` prints them; absent arrays are null."""
    meta: dict[str, Any] = {}
    for field in fields(Header):
        if field.name in _NOT_META:
            continue
        value = getattr(header, field.name)
        if field.name == "extra":
            value = _plain_mapping(value)
        elif isinstance(value, tuple):
            value = list(value) or ([] if field.name in _TEXT_TUPLES else None)
        meta[field.name] = value
    meta["file_size_gb"] = header.file_size_gib
    return meta


def _weights_to_json(table: WeightTable) -> dict[str, Any]:
    return {
        "columns": list(_LAYER_COLUMNS),
        "layers": [[getattr(layer, name) for name in _LAYER_COLUMNS] for layer in table.layers],
        "globals": dict(table.globals),
        "total_bytes": table.total_bytes,
        "complete": table.complete,
    }


def _plain_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _weights(value: object, name: str) -> WeightTable:
    source = check.mapping(value, name, 5)
    if source.get("columns") != list(_LAYER_COLUMNS):
        raise RecordError("the weights are of another version")
    named = check.mapping(source.get("globals"), "globals", MAX_GLOBALS + 1).items()
    return WeightTable(
        layers=_layers(source.get("layers")),
        globals=MappingProxyType({check.text(key, "globals"): check.count(size, "globals") for key, size in named}),
        total_bytes=check.count(source.get("total_bytes"), "total_bytes"),
        complete=check.flag(source.get("complete"), "complete"),
    )


def _layers(rows: object) -> tuple[LayerWeights, ...]:
    """Most blocks of a model are alike: each kind is checked once, and shared."""
    known: dict[tuple[int, ...], LayerWeights] = {}
    layers = []
    for row in check.listing(rows, "layers", MAX_BLOCKS):
        values = tuple(check.listing(row, "layers", len(_LAYER_COLUMNS)))
        if tuple(map(type, values)) != _LAYER_KINDS:
            raise RecordError("a layer of another length, or with values of a wrong kind")
        if values not in known:
            known[values] = LayerWeights(*map(_count_or_flag, values, _LAYER_COLUMNS))
        layers.append(known[values])
    return tuple(layers)


def _count_or_flag(value: object, name: str) -> Any:
    return value if isinstance(value, bool) else check.count(value, name)


def _extra(value: object, name: str) -> Mapping[str, Any]:
    source = check.mapping(value, name, limits.MAX_EXTRA_ENTRIES)
    return MappingProxyType({check.text(key, name): _extra_value(item, name) for key, item in source.items()})


def _extra_value(value: object, name: str) -> object:
    if isinstance(value, list):
        return tuple(_scalar(item, name) for item in check.listing(value, name, limits.MAX_KEPT_ELEMENTS))
    return _scalar(value, name)


def _scalar(value: object, name: str) -> object:
    match value:
        case bool():
            return value
        case int():
            return check.integer(value, name)
        case float():
            return check.number(value, name)
        case str():
            return check.text(value, name)
    raise RecordError(f"{name} holds a value of a wrong kind")


def _shapes(value: object, name: str) -> Mapping[str, tuple[int, ...]]:
    source = check.mapping(value, name, limits.MAX_KEPT_SHAPES)
    return MappingProxyType(
        {check.text(key, name): _counts(shape, name, _MAX_DIMENSIONS) for key, shape in source.items()}
    )


def _counts(value: object, name: str, limit: int = limits.MAX_KEPT_ELEMENTS) -> tuple[int, ...]:
    return tuple(check.count(item, name) for item in check.listing(value, name, limit))


def _texts(value: object, name: str) -> tuple[str, ...]:
    return tuple(check.text(item, name) for item in check.listing(value, name, 2 * limits.MAX_WARNINGS))


def _reader(name: str) -> Callable[[object, str], Any]:
    """How a plain fact is read follows from the kind of its default."""
    match getattr(_DEFAULT, name):
        case bool():
            return check.flag
        case int():
            return check.count
        case float():
            return check.number
        case str():
            return check.text
    return _texts if name in _TEXT_TUPLES else _counts


_READERS: dict[str, Callable[[object, str], Any]] = {
    **{name: _reader(name) for name in _PLAIN},
    "data_complete": check.flag,
    "extra": _extra,
    "weights": _weights,
    "tensor_shapes": _shapes,
}
