"""What a check says about a file (web.md 11.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from models_app.core.export import scalars

BLOCK = "block"
CONFIRM = "confirm"
WARN = "warn"
NOTE = "note"
MAX_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One finding. `rule` is an id of web.md 11.4, `where` a dotted path, `line` counts from 1 (0: the whole file)."""

    rule: str
    severity: str
    where: str
    line: int
    message: str


def finding(rule: str, severity: str, path: Sequence[str | int], line: int, message: str) -> CheckFinding:
    """A finding whose texts are safe to show: one line, of bounded length."""
    where = ".".join(str(part) for part in path)
    return CheckFinding(rule, severity, _shown(where), line, _shown(message))


def _shown(text: str) -> str:
    line = scalars.one_line(text)
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 2]} …"


def blocks(findings: Iterable[CheckFinding]) -> bool:
    """Is there one that forbids using the file?"""
    return any(item.severity == BLOCK for item in findings)


def unstable(text: str, again: str) -> tuple[CheckFinding, ...]:
    """V-22: the same document rendered twice must give the same bytes."""
    if text == again:
        return ()
    return (finding("V-22", BLOCK, (), 0, "rendering twice gave two texts: this is a bug of Quartermaster"),)
