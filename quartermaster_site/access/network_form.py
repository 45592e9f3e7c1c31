"""The network list as a form: one line a row; a line without an address is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from quartermaster_site.access.allow_list import MOST_NOTE, MOST_RULES
from quartermaster_site.access.networks import Network, NetworkRule, parse_network, written

EVERYONE, ADMIN = "everyone", "admin"
WHO = ((EVERYONE, "Everyone"), (ADMIN, "Admin only"))
BLANK_LINES = 3
_MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class NetworkLine:
    """One row as it was typed, and what is wrong with it."""

    network: str = ""
    who: str = EVERYONE
    note: str = ""
    error: str = ""
    parsed: Network | None = None

    @property
    def rule(self) -> NetworkRule:
        """Only of a line without an error."""
        assert self.parsed is not None
        return NetworkRule(self.parsed, self.who == ADMIN, self.note)

    @property
    def correction(self) -> str:
        """`10.0.0.7/24 is stored as 10.0.0.0/24`, where what is stored is not what was typed."""
        as_stored = written(self.parsed) if self.parsed else self.network
        typed = self.network.lower()
        return "" if typed in (as_stored, str(self.parsed)) else f"{self.network} is stored as {as_stored}"


def stored_lines(rules: Sequence[NetworkRule]) -> list[NetworkLine]:
    return [
        NetworkLine(written(rule.network), ADMIN if rule.admins_only else EVERYONE, rule.note, parsed=rule.network)
        for rule in rules
    ]


def posted_lines(posted: Mapping[str, str]) -> list[NetworkLine]:
    """The lines of a post in their order, each with what is wrong with it."""
    typed = [_posted(posted, number) for number in range(1, MOST_RULES + BLANK_LINES + 1)]
    lines: list[NetworkLine] = []
    places: dict[tuple[Network, str], int] = {}
    for line in filter(lambda line: line.network, typed):
        place = places.setdefault((line.parsed, line.who), len(lines) + 1) if line.parsed else len(lines) + 1
        same = f"The same as row {place}." if place <= len(lines) else ""
        lines.append(replace(line, error=line.error or same))
    return lines


def with_blanks(lines: Sequence[NetworkLine]) -> list[tuple[int, NetworkLine]]:
    """The lines of a form with their numbers, and room for more."""
    room = min(BLANK_LINES, max(0, MOST_RULES - len(lines)))
    return list(enumerate([*lines, *[NetworkLine()] * room], 1))


def _posted(posted: Mapping[str, str], number: int) -> NetworkLine:
    network, note = (str(posted.get(f"{key}-{number}", "")).strip() for key in ("network", "note"))
    who, error, parsed = str(posted.get(f"who-{number}", EVERYONE)), "", None
    if not network:
        return NetworkLine()
    try:
        parsed = parse_network(network)
    except ValueError as problem:
        error = str(problem)
    if len(note) > MOST_NOTE or (note and not note.isprintable()):
        error = error or f"A note is one line of at most {MOST_NOTE} characters."
    if who not in dict(WHO):
        error = error or "Choose everyone or admin only."
    return NetworkLine(network[:_MOST_CHARACTERS], who, note[:_MOST_CHARACTERS], error, parsed)
