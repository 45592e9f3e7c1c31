"""Which of the policies that match decides (web.md 7.3). Pure: no database, no request, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

EVERY = "*"
MOST_PATTERN = 200
"""Characters of a pattern."""
ANY_ONE = r"(.|\n)"
ANY_TEXT = r"(.|\n)*"
MOST_STARS = 6
"""Wildcards `*` of one pattern: each multiplies the work of a match."""


class Level(IntEnum):
    """How far a person may go with an object."""

    NONE = 0
    VIEW = 1
    OPERATE = 2
    EDIT = 3
    MANAGE = 4


class Subject(IntEnum):
    """Whom a policy is about; the more exactly it says so, the more it counts."""

    EVERYONE = 0
    ROLE = 1
    GROUP = 2
    USER = 3


@dataclass(frozen=True, slots=True)
class Scope:
    """What is asked about: a host, or with `names` or a `path` a model on it."""

    host: int
    names: tuple[str, ...] = ()
    """Ids of a model, with and without its quant."""
    path: str = ""
    variant: str = ""
    """The id of one of its variants."""

    @property
    def is_host(self) -> bool:
        return not self.names and not self.path


@dataclass(frozen=True, slots=True)
class Rule:
    """One policy. `level` takes the place of what the role gives, up or down."""

    number: int
    subject: Subject
    who: str
    """Of the user, group or role; empty for everyone."""
    host: int | None
    """None: on every host."""
    model: str
    level: Level

    @property
    def is_host_wide(self) -> bool:
        return self.model == EVERY

    @property
    def score(self) -> int:
        return (0 if self.is_host_wide else 2) + (0 if self.host is None else 1)

    @property
    def is_path(self) -> bool:
        """Whether the pattern is about where a file lies."""
        return "/" in self.model or "\\" in self.model

    def covers(self, scope: Scope) -> bool:
        """Whether this policy has a say about an object."""
        if self.host is not None and self.host != scope.host:
            return False
        if self.is_host_wide:
            return True
        if scope.is_host:
            return False
        return self._names(scope.names, scope.path) or self.names_variant(scope)

    def names_variant(self, scope: Scope) -> bool:
        """Whether it names a variant itself, and not only by naming its model."""
        if not scope.variant or self.is_host_wide or self.is_path or self._names(scope.names, scope.path):
            return False
        return bool(compiled(self.model).match(scope.variant))

    def _names(self, names: Iterable[str], path: str) -> bool:
        found = compiled(self.model)
        if self.is_path:
            return bool(path) and bool(found.match(slashed(path)))
        return any(found.match(name) for name in names)


def ordered(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """In the order in which they are asked: the first that covers an object decides."""
    return tuple(sorted(rules, key=_rank))


def _rank(rule: Rule) -> tuple[int, int, int, int]:
    return -rule.score, -rule.subject, rule.level, rule.number


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person may do with an object, and why."""

    level: Level
    winner: Rule | None
    """None: the role decides."""
    matching: tuple[Rule, ...]
    """All that cover the object, the winner first."""


def decide(rules: Sequence[Rule], default: Level, scope: Scope) -> Verdict:
    """`rules` are those about one person, in order; `default` is what their role gives."""
    matching = tuple(rule for rule in rules if rule.covers(scope))
    if scope.variant:  # what names the variant itself goes before what its model has
        matching = tuple(sorted(matching, key=lambda rule: not rule.names_variant(scope)))
    winner = matching[0] if matching else None
    return Verdict(winner.level if winner else default, winner, matching)


def never_wins(rule: Rule, others: Iterable[Rule], members: Iterable[str] | None = None) -> Rule | None:
    """The policy behind which `rule` always stands; None where it can win.

    `members` are the users of its group: where each of them has such a policy, one of these is named.
    """
    before = [other for other in others if _rank(other) < _rank(rule) and _as_wide(other, rule)]
    whole = next((other for other in before if _same_people(other, rule)), None)
    if whole is not None or rule.subject is not Subject.GROUP or members is None:
        return whole
    own = {other.who: other for other in before if other.subject is Subject.USER}
    names = list(members)
    return own[names[0]] if names and all(name in own for name in names) else None


def loses_to(rule: Rule, others: Iterable[Rule]) -> tuple[Rule, ...]:
    """The policies of single hosts through which `rule`, on every host, does not hide what it says it hides."""
    if rule.level is not Level.NONE or rule.host is not None:
        return ()
    return tuple(
        other
        for other in ordered(others)
        if other.host is not None
        and other.level > rule.level
        and _rank(other) < _rank(rule)
        and _models_as_wide(other, rule)
        and (_same_people(other, rule) or rule.subject is Subject.EVERYONE)
    )


def _as_wide(other: Rule, rule: Rule) -> bool:
    """Whether `other` covers every object that `rule` covers."""
    return other.host in (None, rule.host) and _models_as_wide(other, rule)


def _models_as_wide(other: Rule, rule: Rule) -> bool:
    if other.is_host_wide:
        return True
    if rule.is_host_wide or other.is_path != rule.is_path:
        return False
    return _contains(other.model, rule.model)


def _contains(wide: str, narrow: str) -> bool:
    """Whether one pattern surely matches all that the other does: its `*` is a character that only a `*` matches."""
    pattern = re.compile(expression(wide, one="[^\x00]"), re.IGNORECASE)
    return bool(pattern.match(slashed(narrow).replace("*", "\x00")))


def _same_people(other: Rule, rule: Rule) -> bool:
    return other.subject is Subject.EVERYONE or (other.subject, other.who) == (rule.subject, rule.who)


def slashed(path: str) -> str:
    """A path with the slashes that patterns are written with."""
    return path.replace("\\", "/")


def expression(pattern: str, one: str = ANY_ONE) -> str:
    """A pattern as a regular expression that Python, SQLite's function and PostgreSQL read alike.

    `*` is any text, `?` one character. A path that begins with neither a slash nor a wildcard nor a drive may begin at
    any folder.
    """
    text = re.sub(r"\*+", "*", slashed(pattern))
    parts = {"*": ANY_TEXT, "?": one}
    body = "".join(parts.get(letter) or re.escape(letter) for letter in text)
    floating = "/" in text and not re.match(r"[/*?]|[A-Za-z]:", text)
    lead = f"{ANY_TEXT}/" if floating else ""
    return f"^{lead}{body}$"


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    # `$` lets a line feed at the end through; a name that ends so is as good as one that does not.
    return re.compile(expression(pattern), re.IGNORECASE)
