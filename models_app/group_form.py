"""The form of a host's groups: one line a group, in the order in which they are tried."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models_app.core.settings import GroupSpec
from models_app.core.state.app import is_address

MOST_GROUPS = 50
_BLANK_LINES = 2
_MOST_CHARACTERS = 2000
_PLACE = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?", re.ASCII)
"""1.5 puts a line between the first and the second."""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group as it was typed. `place` orders the lines; a line without any text is no group."""

    place: str
    name: str = ""
    match: str = ""
    listen: str = ""
    coexist: bool = False
    error: str = ""

    @property
    def is_blank(self) -> bool:
        return self.has_place and not (self.name or self.match or self.listen or self.coexist)

    @property
    def has_place(self) -> bool:
        return _PLACE.fullmatch(self.place) is not None

    @property
    def spec(self) -> GroupSpec:
        return GroupSpec(self.name, self.listen, _patterns(self.match), self.coexist)


def stored_lines(groups: Sequence[GroupSpec]) -> list[GroupLine]:
    return [
        GroupLine(str(place), spec.name, ", ".join(spec.match), spec.listen, spec.coexist)
        for place, spec in enumerate(groups, 1)
    ]


def posted_lines(posted: Mapping[str, str]) -> list[GroupLine]:
    """The lines of a post by their places, each with what is wrong with it. Lines without a text are left out."""
    lines = [_posted(posted, number) for number in range(1, MOST_GROUPS + 1)]
    lines = sorted((line for line in lines if not line.is_blank), key=_order)
    seen: set[str] = set()
    checked = []
    for place, line in enumerate(lines, 1):
        shown = str(place) if line.has_place else line.place
        checked.append(replace(line, place=shown, error=_problem(line, seen)))
        seen.add(line.name.lower())
    return checked


def with_blanks(lines: Sequence[GroupLine]) -> list[GroupLine]:
    """The lines of a form, with room for more."""
    room = min(_BLANK_LINES, MOST_GROUPS - len(lines))
    return [*lines, *(GroupLine(str(len(lines) + number)) for number in range(1, room + 1))]


def group_values(lines: Sequence[GroupLine]) -> dict[str, Any]:
    """The section as it is stored."""
    groups = [
        {"name": line.name, "listen": line.listen, "match": list(line.spec.match), "coexist": line.coexist}
        for line in lines
    ]
    return {"groups": groups} if groups else {}


def groups_text(lines: Sequence[GroupLine]) -> str:
    """All groups in one line, to compare by eye: `small: *4b* (127.0.0.1:9001); default: *`."""
    return "; ".join(map(_line_text, lines))


def _line_text(line: GroupLine) -> str:
    address = f" ({line.listen})" if line.listen else ""
    return f"{line.name}: {line.match}{address}{' stay together' if line.coexist else ''}"


def _posted(posted: Mapping[str, str], number: int) -> GroupLine:
    name, match, listen = (
        str(posted.get(f"{key}-{number}", "")).strip()[:_MOST_CHARACTERS] for key in ("name", "match", "listen")
    )
    place = str(posted.get(f"place-{number}", "")).strip()[:9] or str(number)
    return GroupLine(place, name, match, listen, bool(posted.get(f"coexist-{number}")))


def _order(line: GroupLine) -> float:
    return float(line.place) if line.has_place else float("inf")


def _problem(line: GroupLine, seen: set[str]) -> str:
    if not line.has_place:
        return "Give the place as a number from 0 to 999, such as 3, or 1.5 for between 1 and 2."
    if not line.name or len(line.name) > 64 or not line.name.isprintable():
        return "Give the group a name of at most 64 characters."
    if line.name.lower() in seen:
        return f"There is a group {line.name} above: give each a name of its own."
    if not line.spec.match:
        return "Give one or more patterns of ids, such as *-embed* or qwen3*."
    if not line.match.isprintable():
        return "Patterns: one line without control characters."
    if line.listen and not is_address(line.listen):
        return "Give the address as host:port, for example 127.0.0.1:9001."
    return ""


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[\s,;]+", text) if part)
