"""The grammar of a preset file as the router reads it (router-llama-server.md 2.1).

No INI library reads it: there is no quoting, a mark glued to a value begins a comment, nothing may be indented but a
comment, and what stands between brackets may hold line breaks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

DEFAULT_SECTION = "default"
"""The model that keys before the first header make."""
GLOBAL_SECTION = "*"
VERSION_KEY = "version"

_END = r"[ \t]*+(?:[;#][^\r\n]*+)?(?:\r\n|\n|\r|\Z)"
_LINE = re.compile(
    rf"""
      \[ [ \t]*+ (?P<name>[^\]]++) \] {_END}
    | (?P<key>[A-Za-z_][A-Za-z0-9_.-]*+) [ \t]*+ = [ \t]*+
      (?P<value>[^;\#\r\n]*+) (?P<comment>[;\#][^\r\n]*+)? (?:\r\n|\n|\r|\Z)
    | {_END}
    """,
    re.VERBOSE,
)
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANKS = " \t"


class PresetSyntaxError(ValueError):
    """A line outside the grammar: the router refuses the whole file."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Pair:
    """One `key = value` line. `glued`: a comment mark stands right behind the value, so it was probably meant."""

    key: str
    value: str
    line: int
    glued: bool = False


@dataclass(slots=True)
class Section:
    """One header with its pairs. The pairs before the first header are a section of line 0."""

    name: str
    line: int
    pairs: list[Pair] = field(default_factory=list)


def parse(text: str) -> list[Section]:
    """Sections in the order of the file, the pairs before the first header first. Raises `PresetSyntaxError`."""
    sections = [Section(DEFAULT_SECTION, 0)]
    position, line = 0, 1
    while position < len(text):
        found = _LINE.match(text, position)
        if found is None:
            raise PresetSyntaxError(line, _complaint(text, position))
        if found["name"] is not None:
            sections.append(Section(found["name"], line))
        elif found["key"] is not None:
            value = found["value"]
            glued = bool(found["comment"]) and bool(value) and value[-1] not in _BLANKS
            sections[-1].pairs.append(Pair(found["key"], value.rstrip(_BLANKS), line, glued))
        line += len(_LINE_END.findall(found[0]))
        position = found.end()
    return sections


def _complaint(text: str, position: int) -> str:
    """What is wrong with a line, in words."""
    line = _LINE_END.split(text[position : position + 400], maxsplit=1)[0]
    if line[:1] in _BLANKS and line.strip(_BLANKS):
        return "this line is indented: a header or a key begins in the first column"
    if line.startswith("["):
        return "this header has no name, no closing bracket, or something behind it"
    if line.startswith("-"):
        return "a key is an option without its dashes"
    if "=" not in line:
        return "this line is no header, no comment and no key = value"
    return "this key holds a character that no option has"
