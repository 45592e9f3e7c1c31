"""Runs input -> expected cases through one adapter per operation (tests/vectors/README.md sections 3 and 6).

    python -m tests.vector_runner [DIR] [--area A] [--op OP] [--json]

An area's adapters are `ADAPTERS` in `tests/adapters/<area with underscores>.py`: operation -> function from the
input (a private copy, without `op`) to the answer. An adapter raises for an input field that it does not know.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.vector_compare import compare

AREAS = (
    "headers",
    "discovery",
    "components",
    "sizing",
    "launch",
    "state",
    "classes",
    "backends",
    "config-yaml",
    "router",
    "router-ini",
    "qwentts",
)
DEFAULT_FOLDER = Path(__file__).parent / "vectors"

DISPUTED = "disputed.json"

Adapter = Callable[[dict[str, Any]], Any]


class VectorFileError(ValueError):
    """A file that holds no vectors although it is named like one."""


@dataclass(frozen=True)
class Outcome:
    """The fate of one vector: `passed`, `failed`, `disputed` or `not_implemented`, with the differences found."""

    vector: dict[str, Any]
    state: str
    details: tuple[str, ...] = ()


@dataclass
class Tally:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    disputed: list[str] = field(default_factory=list)
    not_implemented: int = 0


def adapters_of(area: str) -> dict[str, Adapter]:
    """The adapters of an area; an area without a module has none yet."""
    name = f"tests.adapters.{area.replace('-', '_')}"
    if not name.rpartition(".")[2].isidentifier() or importlib.util.find_spec(name) is None:
        return {}
    adapters: dict[str, Adapter] = importlib.import_module(name).ADAPTERS
    return adapters


def load_vectors(folder: Path) -> list[dict[str, Any]]:
    """All vectors of the JSON files in `folder`, in area order. Raises `VectorFileError`."""
    vectors: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.json")):
        if path.name != DISPUTED:
            vectors += vectors_of(path)
    order = {area: place for place, area in enumerate(AREAS)}
    return sorted(vectors, key=lambda vector: order.get(vector["area"], len(order)))


def vectors_of(path: Path) -> list[dict[str, Any]]:
    """The vectors of one file; none where it holds something else, such as a table of measurements."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VectorFileError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, list):
        return []
    for number, vector in enumerate(content):
        fits = isinstance(vector, dict) and isinstance(vector.get("input"), dict) and "op" in vector["input"]
        if not fits or not isinstance(vector.get("id"), str) or not isinstance(vector.get("area"), str):
            raise VectorFileError(f"{path}: entry {number} is no vector (id, area, input with op)")
    return content


def load_disputed(folder: Path, known: Iterable[str]) -> set[str]:
    """Ids listed in `disputed.json`. Unknown ids are an error where the folder holds the vectors themselves."""
    path = folder / DISPUTED
    if not path.is_file():
        path = DEFAULT_FOLDER / DISPUTED
        return {entry["id"] for entry in json.loads(path.read_text())} if path.is_file() else set()
    disputed = {entry["id"] for entry in json.loads(path.read_text(encoding="utf-8"))}
    unknown = disputed - set(known)
    if unknown:
        raise SystemExit(f"disputed.json names unknown vectors: {', '.join(sorted(unknown))}")
    return disputed


def run_vector(vector: dict[str, Any], adapters: dict[str, Adapter], disputed: bool = False) -> Outcome:
    """Execute one vector and compare its answer."""
    given = copy.deepcopy(vector["input"])
    adapter = adapters.get(given.pop("op"))
    if adapter is None:
        return Outcome(vector, "not_implemented")
    started = time.perf_counter()
    try:
        answer = adapter(given)
    except Exception as error:  # an adapter may fail in any way; the case then counts as failed
        differences = [f"raised {type(error).__name__}: {error}"]
    else:
        elapsed_ms = (time.perf_counter() - started) * 1000
        if isinstance(answer, dict) and "elapsed_ms" in answer:
            elapsed_ms = answer["elapsed_ms"]
        differences = compare(vector, answer, elapsed_ms)
    if not differences:
        return Outcome(vector, "disputed" if disputed else "passed", ("passes after all",) if disputed else ())
    return Outcome(vector, "disputed" if disputed else "failed", tuple(differences))


def run(folder: Path, area: str | None = None, op: str | None = None) -> list[Outcome]:
    """Run every vector of a folder, filtered by area and operation."""
    vectors = load_vectors(folder)
    disputed = load_disputed(folder, (vector["id"] for vector in vectors))
    outcomes = []
    cache: dict[str, dict[str, Adapter]] = {}
    for vector in vectors:
        if (area and vector["area"] != area) or (op and vector["input"]["op"] != op):
            continue
        adapters = cache.setdefault(vector["area"], adapters_of(vector["area"]))
        outcomes.append(run_vector(vector, adapters, vector["id"] in disputed))
    return outcomes


def tally(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Tally]]:
    """Count outcomes per area and operation."""
    table: dict[str, dict[str, Tally]] = {}
    for outcome in outcomes:
        given = outcome.vector
        row = table.setdefault(given["area"], {}).setdefault(given["input"]["op"], Tally())
        match outcome.state:
            case "passed":
                row.passed += 1
            case "failed":
                row.failed.append(given["id"])
            case "disputed":
                row.disputed.append(given["id"])
            case _:
                row.not_implemented += 1
    return table


def print_report(outcomes: list[Outcome]) -> None:
    """Per area and operation, then the failures, then the total."""
    for area, ops in tally(outcomes).items():
        print(area)
        for op, row in sorted(ops.items()):
            extra = f", {len(row.disputed)} disputed" if row.disputed else ""
            extra += f", {row.not_implemented} not implemented" if row.not_implemented else ""
            print(f"  {op:<28} {row.passed} passed, {len(row.failed)} failed{extra}")
    for outcome in outcomes:
        if outcome.state == "failed" or (outcome.state == "disputed" and outcome.details == ("passes after all",)):
            print(f"{outcome.state.upper()} {outcome.vector['id']}: {outcome.vector.get('about', '')}")
            for detail in outcome.details[:8]:
                print(f"    {detail}")
    counts = Counter(outcome.state for outcome in outcomes)
    print(
        f"{counts['passed']} passed, {counts['failed']} failed, {counts['disputed']} disputed,"
        f" {counts['not_implemented']} not implemented"
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; exit code 0 only when nothing failed, 2 for a folder without vectors."""
    parser = argparse.ArgumentParser(prog="quartermaster vectors", description="Run input -> expected cases.")
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="tests/vectors")
    parser.add_argument("--area", metavar="A", help=", ".join(AREAS))
    parser.add_argument("--op", metavar="OP", help="this operation alone")
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")
    options = parser.parse_args(arguments)
    try:
        outcomes = run(options.folder, options.area, options.op)
    except VectorFileError as error:
        print(f"quartermaster vectors: {error}", file=sys.stderr)
        return 2
    if not outcomes:
        print(f"quartermaster vectors: no such vectors in {options.folder}", file=sys.stderr)
        return 2
    try:
        answer(options, outcomes)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(any(outcome.state == "failed" for outcome in outcomes))


def answer(options: argparse.Namespace, outcomes: list[Outcome]) -> None:
    if options.json:
        table = {area: {op: vars(row) for op, row in ops.items()} for area, ops in tally(outcomes).items()}
        print(json.dumps(table))
    else:
        print_report(outcomes)


if __name__ == "__main__":
    raise SystemExit(main())
