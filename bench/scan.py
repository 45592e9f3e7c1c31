"""Folders to rows: cold, cached, and 10,000 small files, against `os.walk` plus `stat` in the same run."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.zoo_tree import zoo_tree
from models_app.core.discovery.inventory import discover, reader_of
from models_app.core.discovery.selection import select
from models_app.core.discovery.walk import list_files
from models_app.core.errors import HeaderError
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache

SMALL_FILES = 10_000
WALK = "os.walk + stat"


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`: seconds of each scan, with limits where the product has a goal."""
    rounds = 1 if quick else 3
    with zoo_tree() as folder, tempfile.TemporaryDirectory() as state:
        cache_file = Path(state) / "headers.sqlite3"
        cold = _median(lambda: _scan(folder, None), rounds)
        _scan(folder, cache_file)
        cached = _median(lambda: _scan(folder, cache_file), rounds)
        walk = _median(lambda: walk_and_stat(folder), 5)
    rows = [
        _row("whole zoo, cold", cold, walk, None),
        _row("whole zoo, headers cached", cached, walk, None),
    ]
    with tempfile.TemporaryDirectory() as many:
        for index in range(SMALL_FILES):
            (Path(many) / f"note-{index}.txt").touch()
        baseline = _median(lambda: walk_and_stat(Path(many)), 5)
        listed = _median(lambda: list_files([many], platform="linux"), 5)
    rows.append(_row(f"listing {SMALL_FILES:,} small files", listed, baseline, 3.0))
    return rows


def walk_and_stat(folder: Path) -> int:
    """The baseline: what any scanner must do at least."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            total += os.stat(os.path.join(parent, name)).st_size
    return total


def _scan(folder: Path, cache_file: Path | None) -> None:
    listing = list_files([str(folder)], platform="linux")
    cache = HeaderCache(cache_file) if cache_file else None
    results = {}
    for candidate in select(listing).candidates:
        try:
            results[candidate.path] = read_header(candidate.path, cache=cache)
        except HeaderError as error:
            results[candidate.path] = error
    discover(listing, reader_of(results))
    if cache:
        cache.close()


def _median(action: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _row(name: str, seconds: float, baseline_seconds: float, limit: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "value": seconds * 1000,
        "unit": "ms",
        "baseline": WALK,
        "ratio": seconds / baseline_seconds,
        "limit": limit,
    }
