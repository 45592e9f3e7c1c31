"""Folders to rows: listing, reading headers, and scanning again, each against a baseline of the same run.

The scan is the product's own, with its reports thrown away: what a host worker does. Trees are made of hard links, so
that a thousand files with real headers take no space.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.zoo_tree import zoo_tree
from models_app import watching
from models_app.core.discovery.roots import Root
from models_app.core.discovery.walk import list_files
from models_app.core.readers.cache import HeaderCache
from models_app.scanning import Scan
from quartermaster_site.jobs.reporting import Reporter
from tests.tiny_models import tiny_gguf

MANY, SOME = 10_000, 1_000
PER_FOLDER = 10
SAMPLE = 5
WALK, ORACLE = "os.walk + stat", "gguf.GGUFReader"
SMALL_HEADERS = "mixtral-8x7b"


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`, with limits where the product has a goal."""
    some, many = (SOME // 10, MANY // 10) if quick else (SOME, MANY)
    with tempfile.TemporaryDirectory(prefix="qm-bench-state-") as state:
        os.environ["QM_DATA_DIR"] = state
        with zoo_tree() as zoo:
            whole = [path for path in sorted(zoo.glob("*.gguf")) if "-of-" not in path.name]
            rows = _zoo_rows(whole, some, Path(state))
            rows += _memory_rows(next(path for path in whole if SMALL_HEADERS in path.name), some, many)
        return rows + _unchanged_rows(many)


def _zoo_rows(models: list[Path], count: int, state: Path) -> list[dict[str, Any]]:
    """Real headers, read for the first time and from the cache."""
    with tempfile.TemporaryDirectory(prefix="qm-bench-tree-", dir=models[0].parent.parent) as folder:
        _links(models, count, Path(folder))
        cold = _seconds(lambda: scan(folder, state / "headers.sqlite3"))
        warm = _seconds(lambda: scan(folder, state / "headers.sqlite3"))
        walk = statistics.median(_seconds(lambda: walk_and_stat(folder)) for _ in range(5))
    sample = models[:: max(len(models) // SAMPLE, 1)][:SAMPLE]
    oracle = count * statistics.mean(_seconds(lambda path=path: _oracle(path)) for path in sample)
    return [
        _row(f"{count:,} zoo files, cold", cold, f"{ORACLE} ({len(sample)} files, extrapolated)", oracle, 1 / 20),
        _row(f"{count:,} zoo files, headers cached", warm, WALK, walk, None),
    ]


def _unchanged_rows(count: int) -> list[dict[str, Any]]:
    """Nothing has changed: a scan of it, and a look at it."""
    rows = []
    for per_folder, what in ((PER_FOLDER, f"{PER_FOLDER} a folder"), (count, "in one folder")):
        with tempfile.TemporaryDirectory(prefix="qm-bench-many-") as folder:
            for number in range(count):
                place = Path(folder, f"{number // per_folder}")
                place.mkdir(exist_ok=True)
                tiny_gguf(place / f"model-{number}-1b-Q4_0.gguf", name=f"Model {number}")
            walk, again, look = _unchanged_seconds(folder)
        rows.append(_row(f"scan of {count:,} unchanged, {what}", again, WALK, walk, 3.0))
        rows.append(_row(f"look at {count:,} unchanged, {what}", look, WALK, walk, 3.0))
    return rows


def _unchanged_seconds(folder: str) -> list[float]:
    """The walk alone, a scan, and a look."""
    seen = watching.fingerprint_of(list_files([folder], platform="linux"))
    return _medians(
        lambda: walk_and_stat(folder),
        lambda: scan(folder, None, seen),
        lambda: watching.look([Root(folder)], seen, platform="linux", should_stop=lambda: False),
    )


def _memory_rows(model: Path, some: int, many: int) -> list[dict[str, Any]]:
    """Peak resident memory of a whole first scan, in a process of its own."""
    few_mib, many_mib = (_scan_peak_mib(model, count) for count in (some, many))
    return [
        {"name": f"peak memory, {some:,} files", "value": few_mib, "unit": "MiB", "limit_value": 100},
        {
            "name": f"peak memory, {many:,} files",
            "value": many_mib,
            "unit": "MiB",
            "baseline": f"that of {some:,} files",
            "ratio": many_mib / few_mib,
            "limit": 2.0,
        },
    ]


def scan(folder: str, cache_file: Path | None, seen: str = "") -> dict[str, Any]:
    """The product's scan of one folder; nobody listens to its reports."""
    cache = HeaderCache(cache_file, in_memory=0)
    reporter = Reporter(1, "bench", sender=lambda _event: None)
    try:
        return Scan(reporter, cache, "linux", {}, seen).run([Root(folder)])
    finally:
        cache.close()


def walk_and_stat(folder: str) -> int:
    """The baseline: what any scanner must do at least."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            total += os.stat(os.path.join(parent, name)).st_size
    return total


def _links(models: list[Path], count: int, folder: Path) -> None:
    for number in range(count):
        model = models[number % len(models)]
        stem, quant = model.stem.rsplit("-", 1)
        place = folder / f"{number // PER_FOLDER}"
        place.mkdir(exist_ok=True)
        os.link(model, place / f"{stem}-v{number}-{quant}.gguf")


_PEAK_CODE = """
import re, sys
from pathlib import Path
from bench.scan import scan
scan(sys.argv[1], Path(sys.argv[2]))
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def _scan_peak_mib(model: Path, count: int) -> float:
    with tempfile.TemporaryDirectory(prefix="qm-bench-tree-", dir=model.parent.parent) as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        _links([model], count, tree)
        finished = subprocess.run(
            [sys.executable, "-c", _PEAK_CODE, str(tree), str(Path(folder, "headers.sqlite3"))],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).resolve().parent.parent,
        )
    return int(finished.stdout) / 1024


def _oracle(path: Path) -> None:
    from gguf import GGUFReader

    GGUFReader(path)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _medians(*actions: Callable[[], object]) -> list[float]:
    """Of five rounds in which all take turns, so that they see the same machine."""
    rounds = [[_seconds(action) for action in actions] for _ in range(5)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def _row(name: str, seconds: float, baseline: str, baseline_seconds: float, limit: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "value": seconds * 1000,
        "unit": "ms",
        "baseline": baseline,
        "ratio": seconds / baseline_seconds,
        "limit": limit,
    }
