"""What a server's `--help` text says (launch.md 12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from models_app.core.launch.flag_table import FlagTable

MAX_HELP_CHARACTERS = 4 << 20
MAX_SUGGESTIONS = 2
SHORT_NAME = 4
"""Names up to this length allow one typing error, longer ones three."""

_SPELLING = re.compile(r"(?:^|(?<=[\s,(\[]))--?[A-Za-z][A-Za-z0-9_-]*")
_OPTION_LINE = re.compile(r" {0,9}(?P<head>--?[A-Za-z](?:(?<=,)\s+(?=-)|\S|\s(?!\s))*)")
"""From the first spelling to where the text beside it begins: at two blanks. Builds before 2024-10 indent them."""
_IN_BRACKETS = re.compile(r"<[^<>]*>")
"""One value, whatever blanks it holds: `<tensor name pattern>=<buffer type>`."""
_NEXT_SPELLING = re.compile(r",\s+(?=-)")


@dataclass(frozen=True, slots=True)
class Help:
    """Spellings of a binary's flags in the order of the text; names that prose mentions count too.

    `hints` holds the value hint of the spellings that have an option line of their own ("" for a flag without value).
    """

    spellings: tuple[str, ...] = ()
    hints: dict[str, str] = field(default_factory=dict)

    def values(self, spelling: str) -> int | None:
        """How many words follow the flag, None where the text does not say."""
        hint = self.hints.get(spelling)
        return None if hint is None else len(_IN_BRACKETS.sub("x", hint).split())


def parse_help(text: str) -> Help:
    """Reads a help text. An error message instead of one gives no spelling at all."""
    text = text[:MAX_HELP_CHARACTERS]
    names = (match.group() for match in _SPELLING.finditer(text))
    spellings = tuple(dict.fromkeys(name for name in names if not name.endswith("-")))
    hints: dict[str, str] = {}
    for line in text.splitlines():
        if option := _OPTION_LINE.match(line):
            for name, hint in _spelled(option["head"]):
                hints.setdefault(name, hint)
    return Help(spellings, hints)


def _spelled(head: str) -> list[tuple[str, str]]:
    """Each spelling with its value hint. The hint after the last counts for all: `-c, --ctx-size N`. The builds of
    2023 give each its own: `-c N, --ctx-size N`.
    """
    parts = [part.strip().partition(" ") for part in _NEXT_SPELLING.split(head)]
    return [(name, (hint or parts[-1][2]).strip()) for name, _, hint in parts]


def suggest(table: FlagTable, name: str, help_spellings: Sequence[str] | None = None) -> tuple[str, ...]:
    """Flags that a misspelt name may mean: all spellings of the row it equals but for dashes, else the nearest two."""
    wanted = _bare(name)
    if not wanted:
        return ()
    for row in table.rows:
        if any(_bare(spelling) == wanted for spelling in row.spellings):
            return row.spellings
    limit = 1 if len(wanted) <= SHORT_NAME else 3
    known = dict.fromkeys([*table.by_spelling, *(help_spellings or ())])
    distances = ((_distance(wanted, _bare(spelling), limit), spelling) for spelling in known)
    near = sorted((distance, spelling) for distance, spelling in distances if 1 <= distance <= limit)
    return tuple(spelling for _, spelling in near[:MAX_SUGGESTIONS])


def _bare(name: str) -> str:
    return name.lstrip("-").lower()


def _distance(left: str, right: str, limit: int) -> int:
    """Levenshtein distance; more than `limit` is reported as `limit + 1`."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    previous = list(range(len(right) + 1))
    for row, char in enumerate(left, 1):
        current = [row]
        for column, other in enumerate(right, 1):
            cost = previous[column - 1] + (char != other)
            current.append(min(cost, previous[column] + 1, current[-1] + 1))
        previous = current
    return previous[-1]
