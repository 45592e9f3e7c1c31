"""The Files tab as text: files with their roles, header facts with long values folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from models_app.selectors import ModelDetail
from quartermaster_site.figures import UNKNOWN, gib

LONGEST_FACT = 120


@dataclass(frozen=True, slots=True)
class FileRow:
    path: str
    role: str
    size: str
    modified: str


@dataclass(frozen=True, slots=True)
class FactRow:
    """`rest` holds the whole value when `text` is only its beginning."""

    name: str
    text: str
    rest: str


def file_rows(detail: ModelDetail) -> list[FileRow]:
    times = {shard.path: shard.mtime_ns for shard in detail.found.shards}
    times.setdefault(detail.found.full_path, detail.found.mtime_ns)
    return [
        FileRow(
            path=part.path,
            role=part.role,
            size=f"{gib(part.size_bytes)} GiB",
            modified=_moment(times.get(part.path, 0)),
        )
        for part in detail.parts
    ]


def _moment(mtime_ns: int) -> str:
    if mtime_ns <= 0 or mtime_ns > 1 << 62:
        return UNKNOWN
    return f"{datetime.fromtimestamp(mtime_ns / 1e9, tz=UTC):%Y-%m-%d %H:%M}"


def fact_rows(facts: Sequence[tuple[str, str]], query: str) -> list[FactRow]:
    """Facts whose name or value has every word of the query."""
    words = query.lower().split()
    return [
        FactRow(name, value[:LONGEST_FACT], value if len(value) > LONGEST_FACT else "")
        for name, value in facts
        if all(word in f"{name} {value}".lower() for word in words)
    ]


def read_note(detail: ModelDetail) -> str:
    facts = detail.row.header
    if facts is None:
        return "This file's header was not read."
    if detail.header is None:
        where = f" at byte {facts.error_offset:,}" if facts.error_offset is not None else ""
        return f"Not readable{where}: {detail.header_error}"
    return f"read {facts.read_at:%Y-%m-%d %H:%M} UTC"
