"""The work of `project`: headers to tables, tables to projections, projections to lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TextIO

from models_app.core.catalog import Header, Launch, MemoryUse, Projection
from models_app.core.classes import classify
from models_app.core.errors import QuartermasterError, UsageError
from models_app.core.planning.launch_check import model_problem
from models_app.core.planning.model_facts import ModelTable
from models_app.core.planning.projection import project
from models_app.core.planning.table import model_table
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache
from models_app.core.units import GIB, MIB
from models_app.core.verbs.answers import FAILED, OK, USAGE, failure, shown, write_json
from models_app.core.verbs.environment import Environment
from models_app.core.verbs.knobs import launch_of

EMBEDDING = "embedding"
_LANGUAGE_CLASSES = ("llm", EMBEDDING, "decision")
_KEPT_TABLES = 512
PIPE = "-"
MAX_LINE = 1 << 20
"""Characters of one line of a batch."""


class Tables:
    """Tables of models by path, each read once."""

    def __init__(self, cache: HeaderCache | None) -> None:
        self._cache = cache
        self._known: dict[str, tuple[ModelTable, str, tuple[str, ...]]] = {}

    def get(self, path: str) -> tuple[ModelTable, str, tuple[str, ...]]:
        """Table, class and warnings of the header. Raises HeaderError."""
        known = self._known.get(path)
        if known is None:
            header = read_header(path, cache=self._cache)
            model_class = classify(os.path.basename(path.rstrip("/")), header).model_class
            known = model_table(header), model_class, _warnings(header, model_class)
            if len(self._known) >= _KEPT_TABLES:
                self._known.clear()
            self._known[path] = known
        return known


@contextmanager
def open_tables(environment: Environment, *, use_cache: bool) -> Iterator[Tables]:
    """Tables behind the header cache of this user, or without one."""
    folds_case = environment.platform != "linux"
    cache = HeaderCache(environment.header_cache, fold_case=folds_case) if use_cache else None
    try:
        yield Tables(cache)
    finally:
        if cache is not None:
            cache.close()


def _warnings(header: Header, model_class: str) -> tuple[str, ...]:
    if header.format != "gguf":
        return (f"llama-server loads GGUF files only, this is {header.format}", *header.warnings)
    if model_class not in _LANGUAGE_CLASSES:
        return (f"not a language model (class {model_class})", *header.warnings)
    return header.warnings


def _project(path: str, launch: Launch, tables: Tables) -> Projection:
    """Raises HeaderError, and UsageError for a launch that llama.cpp would refuse for this model."""
    table, model_class, warnings = tables.get(path)
    problem = model_problem(table, launch)
    if problem:
        raise UsageError(problem)
    projection = project(table, replace(launch, embeddings=model_class == EMBEDDING), replays=True)
    return replace(projection, warnings=(*projection.warnings, *warnings))


def run_files(files: list[str], launch: Launch, tables: Tables, environment: Environment, *, as_json: bool) -> int:
    """One launch for each of these files. A file that fails gets an error in its place and the rest goes on."""
    worst = OK
    for number, path in enumerate(files, 1):
        environment.note(f"{number}/{len(files)} {shown(path)}")
        try:
            projection = _project(path, launch, tables)
        except QuartermasterError as error:
            worst = max(worst, USAGE if isinstance(error, UsageError) else FAILED)
            environment.clear_note()
            if as_json:
                write_json(environment.stdout, failure(path, error))
            else:
                details = failure(path, error)["error"]
                print(f"{shown(path)}: {shown(details['message'])}", file=environment.stderr)
            continue
        environment.clear_note()
        if as_json:
            write_json(environment.stdout, _answer(path, projection))
        else:
            print("\n".join(_report(path, projection)), file=environment.stdout)
    return worst


def run_batch(batch: str, defaults: dict[str, Any], tables: Tables, environment: Environment) -> int:
    """One answer a line, in order. A line that can't be answered gets an error object and the rest goes on."""
    worst = OK
    try:
        with _open_batch(batch) as stream:
            for number, line in enumerate(_lines(stream), 1):
                environment.note(f"line {number}")
                answer = _batch_answer(number, line, defaults, tables)
                environment.clear_note()
                write_json(environment.stdout, answer)
                worst = max(worst, FAILED if "error" in answer else OK)
    except OSError as error:
        raise UsageError(f"cannot read {shown(batch)}: {error.strerror}") from error
    return worst


def _open_batch(path: str) -> TextIO:
    """The batch as text; - is standard input. A byte-order mark in front is no part of it."""
    source = sys.stdin.fileno() if path == PIPE else path
    return open(source, encoding="utf-8-sig", errors="surrogateescape", closefd=path != PIPE)


def _lines(stream: TextIO) -> Iterator[str]:
    """Lines without end are cut: what is left of one is too long to be read, and says so."""
    while line := stream.readline(MAX_LINE + 1):
        yield line
        while len(line) > MAX_LINE and not line.endswith("\n"):
            line = stream.readline(MAX_LINE + 1)


def _batch_answer(number: int, line: str, defaults: dict[str, Any], tables: Tables) -> dict[str, Any]:
    path = ""
    try:
        wanted = _batch_object(number, line)
        named = wanted.pop("file", None)
        if not isinstance(named, str) or not named or "\0" in named:
            raise UsageError(f"line {number}: file is missing")
        path = named
        knobs = defaults | {name: value for name, value in wanted.items() if value is not None}
        return _answer(path, _project(path, launch_of(knobs), tables))
    except QuartermasterError as error:
        return failure(path, error)


def _batch_object(number: int, line: str) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        raise UsageError(f"line {number}: longer than {MAX_LINE:,} characters")
    try:
        wanted = json.loads(line, object_pairs_hook=_once)
    except UsageError as error:
        raise UsageError(f"line {number}: {error}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"line {number}: not JSON") from None
    if not isinstance(wanted, dict):
        raise UsageError(f"line {number}: not an object")
    return wanted


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{twice!r} is given twice")
    return found


def _answer(path: str, projection: Projection) -> dict[str, Any]:
    return {
        "file": path,
        "engine": projection.engine,
        "devices": [{"name": use.name, **_bytes_of(use)} for use in projection.devices],
        "host": _bytes_of(projection.host),
        "warnings": list(projection.warnings),
    }


def _bytes_of(use: MemoryUse) -> dict[str, int]:
    return {
        "model_bytes": use.model_bytes,
        "context_bytes": use.context_bytes,
        "compute_bytes": use.compute_bytes,
    }


def _report(path: str, projection: Projection) -> list[str]:
    """A small table for people."""
    rows: list[tuple[str, ...]] = [("", "weights", "context", "compute", "total")]
    for use in (*projection.devices, projection.host):
        sizes = (use.model_bytes, use.context_bytes, use.compute_bytes, use.total_bytes)
        rows.append((use.name, *map(_size, sizes)))
    lines = [f"{shown(path)}  ({projection.engine})"]
    lines += [f"  {name:<6}" + "".join(f"{cell:>12}" for cell in cells) for name, *cells in rows]
    return lines + [f"  warning: {shown(text)}" for text in projection.warnings]


def _size(size_bytes: int) -> str:
    if size_bytes >= GIB:
        return f"{size_bytes / GIB:.2f} GiB"
    return f"{size_bytes / MIB:.1f} MiB"
