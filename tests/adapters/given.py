"""Reads the shapes of tests/vectors/README.md 4 strictly: a field that we do not know is an error."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from models_app.core.catalog import Header, Row
from models_app.core.settings import Override, Settings, Variant, record_from_mapping, unknown_keys
from models_app.core.units import GIB

Given = dict[str, Any]
Answer = dict[str, Any]
Record = TypeVar("Record")


def keywords(function: Callable[..., Answer]) -> Callable[[Given], Answer]:
    """An adapter from a function whose parameters are the input fields."""

    @functools.wraps(function)
    def adapter(given: Given) -> Answer:
        return function(**given)

    return adapter


def record(kind: type[Record], document: Given | None) -> Record:
    document = document or {}
    unknown = unknown_keys(kind, document)
    if unknown:
        raise KeyError(f"{kind.__name__}: unknown fields {', '.join(unknown)}")
    return record_from_mapping(kind, document)


def settings(document: Given | None) -> Settings:
    return record(Settings, document)


def override(document: Given | None) -> Override:
    return record(Override, document)


def variant(document: Given | None) -> Variant:
    return record(Variant, document)


def header(meta: Given | None) -> Header:
    """Header facts under the names of headers.md; sizes come as GB."""
    facts = {key: tuple(value) if isinstance(value, list) else value for key, value in (meta or {}).items()}
    size_gb = facts.pop("file_size_gb", 0)
    return Header(**facts, file_size_bytes=round(size_gb * GIB))


def row(fields: Given) -> Row:
    """A discovered model; a missing id is the file stem of its path."""
    facts = dict(fields)
    for name in ("size", "draft_size", "mmproj_size", "codec_size"):
        if f"{name}_gb" in facts:
            facts[f"{name}_bytes"] = round(facts.pop(f"{name}_gb") * GIB)
    name = facts.get("full_path", "").replace("\\", "/").rsplit("/", 1)[-1]
    facts.setdefault("file_name", name)
    facts.setdefault("id", name.rsplit(".", 1)[0])
    return Row(**facts)
