"""Rows, components and findings as JSON between a host and the control side. Reading takes nothing on trust."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from models_app.core.catalog import FileEntry, Finding, Row
from models_app.core.components import signals
from models_app.core.components.pool import PoolEntry
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.untrusted import ReportRefused

MAX_SHARDS = 10_000
MAX_BLOB_NODES = 200_000
_TEXT_LIMITS = {
    "publisher": 200,
    "repo": 200,
    "file_name": 300,
    "quant": 40,
    "category": 16,
    "model_class": 16,
    "role": 16,
    "family": 64,
    "recognised_by": 200,
    "withheld": 200,
}
_PATHS = frozenset({"path", "mmproj", "full_path", "root", "draft_path", "mmproj_path", "codec_path"})
LEVELS = ("info", "warning", "error")
_ROW_FIELDS = tuple(item.name for item in fields(Row))


def row_to_json(row: Row) -> dict[str, Any]:
    """Every field of a row; shards as [path, size, mtime, real path]."""
    data: dict[str, Any] = {name: getattr(row, name) for name in _ROW_FIELDS}
    data["shards"] = [[item.path, item.size_bytes, item.mtime_ns, item.real_path] for item in row.shards]
    data["missing_shards"] = list(row.missing_shards)
    return data


def row_from_json(value: Any) -> Row:
    """A row as a host, or the database, has it. Raises ReportRefused."""
    data = untrusted.mapping(value, "a row")
    kept: dict[str, Any] = {}
    for item in fields(Row):
        if item.name in data and item.name not in ("shards", "missing_shards"):
            kept[item.name] = _field(item.name, str(item.type), data[item.name])
    shards = untrusted.items(data.get("shards", []), "shards", MAX_SHARDS)
    missing = untrusted.items(data.get("missing_shards", []), "missing_shards", MAX_SHARDS)
    kept["shards"] = tuple(_shard(shard) for shard in shards)
    kept["missing_shards"] = tuple(untrusted.integer(number, "missing shard", 0, 99_999) for number in missing)
    for name in ("id", "full_path"):
        if not kept.get(name):
            raise ReportRefused(f"a row without {name}")
    return Row(**kept)


def _field(name: str, kind: str, value: Any) -> Any:
    if kind == "bool":
        return untrusted.boolean(value, name)
    if kind == "int":
        return untrusted.integer(value, name, -untrusted.MAX_INT if name == "mtime_ns" else 0)
    if name in _PATHS:
        return untrusted.path(value, name)
    return untrusted.text(value, name, _TEXT_LIMITS.get(name, 300))


def _shard(value: Any) -> FileEntry:
    path, size, mtime, real = untrusted.items(value, "a shard", 4) + [""] * (4 - len(value))
    return FileEntry(
        untrusted.path(path, "shard path"),
        untrusted.integer(size, "shard size"),
        untrusted.integer(mtime, "shard time", -untrusted.MAX_INT),
        untrusted.path(real, "shard real path"),
    )


def component_to_json(entry: PoolEntry) -> dict[str, Any]:
    """Every field of a component file; numbers that a header made up are cut to what a report may hold."""
    return {
        name: min(value, untrusted.MAX_INT) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in asdict(entry).items()
    }


def component_from_json(value: Any) -> PoolEntry:
    """A component file as a host has it. Raises ReportRefused."""
    data = untrusted.mapping(value, "a component")
    kept: dict[str, Any] = {}
    for item in fields(PoolEntry):
        if item.name in data:
            kept[item.name] = _field(item.name, str(item.type), data[item.name])
    if not kept.get("path") or kept.get("role") not in signals.ROLES:
        raise ReportRefused("a component without a path or without a role that is known")
    return PoolEntry(**kept)


def finding_to_json(finding: Finding) -> dict[str, Any]:
    return asdict(finding)


def finding_from_json(value: Any) -> Finding:
    data = untrusted.mapping(value, "a finding")
    level = untrusted.text(data.get("level", "warning"), "level", 8)
    return Finding(
        kind=untrusted.text(data.get("kind"), "kind", 48),
        path=untrusted.path(data.get("path"), "path"),
        text=untrusted.text(data.get("text"), "text", 1000),
        level=level if level in LEVELS else "warning",
        code=untrusted.text(data.get("code", ""), "code", 40),
        offset=untrusted.optional_integer(data.get("offset"), "offset"),
    )


def bounded(value: Any, *, nodes: int = MAX_BLOB_NODES, depth: int = 12) -> Any:
    """JSON of any shape with at most this many values, this deep, all text storable; raises ReportRefused."""
    left = nodes
    stack = [(value, 0)]
    while stack:
        item, level = stack.pop()
        left -= 1
        if left < 0 or level > depth:
            raise ReportRefused("a record is too large or too deep")
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        stack.extend((child, level + 1) for child in children)
    return _storable(value)


def _storable(value: Any) -> Any:
    """The same with text that every database takes: PostgreSQL keeps neither NUL nor lone surrogates."""
    if isinstance(value, str):
        return untrusted.storable(value)
    if isinstance(value, dict):
        return {untrusted.storable(str(key)): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
