"""Hand-written model blocks of the settings file (config-yaml.md 8), checked strictly: one bad block fails a load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models_app.core.errors import LaunchError
from models_app.core.export import schema
from models_app.core.export.document import Entry, Skipped
from models_app.core.export.router.load_rules import read_config
from models_app.core.export.router.readers import REFERENCE_MODEL_KEYS
from models_app.core.launch.tokens import command_lines, split_command

DIALECT = "quartermaster"


def extra_model(name: str, block: Any, taken: set[str]) -> Entry | Skipped:
    """The entry of one block, or the reason for leaving it out."""
    reason = _problem(name, block, taken)
    if reason:
        return Skipped(id=name, reason=reason, label=f'extra model "{name}"', model_class="extra")
    command = tuple(lines_as_written(str(block["cmd"])))
    fields = {key: value for key, value in block.items() if key != "cmd" and value is not None}
    return Entry(id=name, command=command, fields=fields, base=name)


def _problem(name: str, block: Any, taken: set[str]) -> str:
    if not name.strip():
        return "it has no name"
    if name in taken:
        return "a discovered model has that name"
    if not isinstance(block, Mapping):
        return "it must be a mapping"
    if unknown := sorted(str(key) for key in block if key not in REFERENCE_MODEL_KEYS):
        return f"unknown key {unknown[0]}"
    if not str(block.get("cmd") or "").strip():
        return "cmd is missing"
    if not any(_is_positive(block.get(key)) for key in ("estVramGB", "estRamGB")):
        return "it needs estVramGB or estRamGB"
    return _reader_problem(name, block)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _reader_problem(name: str, block: Mapping[str, Any]) -> str:
    """What the router or our own schema would say about it."""
    config = {"models": {name: dict(block)}}
    if violations := read_config(DIALECT, config).violations:
        return violations[0].message
    problem = next(schema.problems(DIALECT, config), None)
    return f"{'.'.join(map(str, problem.path[2:]))}: {problem.message}" if problem else ""


def lines_as_written(text: str) -> list[str]:
    """A command by its lines, where that keeps every word; else in one piece."""
    lines = [line.strip() for line in command_lines(text)]
    try:
        kept = split_command("\n".join(lines)) == split_command(text)
    except LaunchError:
        kept = False
    return lines if kept else [text]
