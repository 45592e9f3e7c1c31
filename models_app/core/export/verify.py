"""The checks after rendering, before anything is written (config-yaml.md 12.8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from models_app.core.errors import ExportError
from models_app.core.export import load
from models_app.core.export.document import Document, structure
from models_app.core.export.findings import BLOCK, CheckFinding, blocks, finding
from models_app.core.export.validate import validate_tree
from models_app.core.launch.macros import PORT


def verify(document: Document, text: str) -> list[CheckFinding]:
    """All findings of a rendered document: the file's own rules, and that it reads back as it was meant."""
    try:
        tree = load.load(text)
    except load.LoadError as error:
        return [finding("V-01", BLOCK, (), error.line, error.message)]
    findings = validate_tree(tree, document.dialect, document.word_rules)
    if blocks(item for item in findings if item.rule == "V-01"):
        return findings
    return [*findings, *_difference(structure(document), tree.value), *_ports(document)]


def require_valid(findings: list[CheckFinding]) -> None:
    """Raises `ExportError` with the first blocking finding."""
    first = next((item for item in findings if item.severity == BLOCK), None)
    if first is not None:
        count = sum(item.severity == BLOCK for item in findings)
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise ExportError(f"{first.rule}, line {first.line}: {first.message}{more}")


def _ports(document: Document) -> Iterator[CheckFinding]:
    """Every command that we wrote takes exactly one port. Hand-written models may have their own way."""
    for entry in document.entries:
        if entry.model_class and " ".join(entry.command).count(PORT) != 1:
            yield finding("V-05", BLOCK, ("models", entry.id, "cmd"), 0, f"{entry.id}: {PORT} must stand there once")


def _difference(meant: Any, found: Any) -> Iterator[CheckFinding]:
    path = first_difference(meant, found)
    if path is not None:
        yield finding("V-22", BLOCK, path, 0, "the text does not read back as it was meant")


def first_difference(meant: Any, found: Any, path: tuple[str | int, ...] = ()) -> tuple[str | int, ...] | None:
    """Where two structures differ, None for nowhere. The newline that ends a folded command is no difference."""
    match meant, found:
        case dict(), dict() if meant.keys() == found.keys():
            inner = (first_difference(value, found[key], (*path, key)) for key, value in meant.items())
            return next((place for place in inner if place is not None), None)
        case ((list() | tuple()), list()) if len(meant) == len(found):
            pairs = enumerate(zip(meant, found, strict=True))
            inner = (first_difference(one, other, (*path, index)) for index, (one, other) in pairs)
            return next((place for place in inner if place is not None), None)
        case str(), str():
            ending = "\n" if path and path[-1] == "cmd" else ""
            return None if found in (meant, meant + ending) else path
        case bool(), bool():
            return None if meant is found else path
        case ((int() | float()), (int() | float())) if not isinstance(meant, bool) and not isinstance(found, bool):
            return None if math.isclose(meant, found, rel_tol=1e-12) else path
    return None if meant is None and found is None else path
