"""The matrix of llama-swap: its set expressions and its solver (config-yaml.md 12.6).

`&` binds tighter than `|`; `+name` stands for another set; identifiers are letters, digits, `_`, `-` and `.`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

TOKEN = re.compile(r"\s*(?:(?P<mark>[&|()])|(?P<ref>\+?)(?P<name>[\w.-]+))", re.UNICODE)
MAX_SETS = 10_000
MAX_DEPTH = 64


class MatrixError(ValueError):
    """An expression that cannot be read, or one with too many combinations to list."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: `leaf`, `ref`, `and` or `or`."""

    kind: str
    name: str = ""
    children: tuple[Expression, ...] = ()

    def names(self, kind: str) -> Iterator[str]:
        """Names of all leaves (or references) below, in order."""
        if self.kind == kind:
            yield self.name
        for child in self.children:
            yield from child.names(kind)


def parse(text: str) -> Expression:
    """An expression from its text."""
    return _Parser(_tokens(text)).whole()


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        found = TOKEN.match(stripped, position)
        if found is None:
            raise MatrixError(f"unexpected character {stripped[position:].lstrip()[:1]!r}")
        position = found.end()
        if found["mark"]:
            tokens.append((found["mark"], ""))
        else:
            tokens.append(("ref" if found["ref"] else "leaf", found["name"]))
    return tokens


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    def whole(self) -> Expression:
        if not self.tokens:
            raise MatrixError("empty expression")
        expression = self._alternatives()
        if self.position < len(self.tokens):
            raise MatrixError(f"unexpected {self._peek()!r} after the expression")
        return expression

    def _peek(self) -> str:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else ""

    def _alternatives(self) -> Expression:
        return self._joined("|", "or", lambda: self._joined("&", "and", self._atom))

    def _joined(self, mark: str, kind: str, part: Callable[[], Expression]) -> Expression:
        parts = [part()]
        while self._peek() == mark:
            self.position += 1
            parts.append(part())
        return parts[0] if len(parts) == 1 else Expression(kind, children=tuple(parts))

    def _atom(self) -> Expression:
        kind = self._peek()
        if kind == "":
            raise MatrixError("the expression ends too early")
        name = self.tokens[self.position][1]
        self.position += 1
        if kind in ("leaf", "ref"):
            return Expression(kind, name)
        if kind != "(":
            raise MatrixError(f"unexpected {kind!r}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise MatrixError(f"parentheses nested deeper than {MAX_DEPTH}")
        inner = self._alternatives()
        if self._peek() != ")":
            raise MatrixError("missing closing parenthesis")
        self.position += 1
        self.depth -= 1
        return inner


def expand(expression: Expression, named: Mapping[str, Expression] | None = None) -> list[list[str]]:
    """All combinations of an expression in order; a model stands once in each."""
    return _expand(expression, named or {}, ())


def _expand(expression: Expression, named: Mapping[str, Expression], seen: tuple[str, ...]) -> list[list[str]]:
    match expression.kind:
        case "leaf":
            return [[expression.name]]
        case "ref":
            if expression.name not in named:
                raise MatrixError(f"no set named {expression.name!r}")
            if expression.name in seen:
                raise MatrixError(f"set {expression.name!r} refers to itself")
            return _expand(named[expression.name], named, (*seen, expression.name))
        case "or":
            alternatives = [sets for child in expression.children for sets in _expand(child, named, seen)]
            return _bounded(alternatives)
    product: list[list[str]] = [[]]
    for child in expression.children:
        right = _expand(child, named, seen)
        if len(product) * len(right) > MAX_SETS:
            raise MatrixError(f"more than {MAX_SETS:,} combinations")
        product = [list(dict.fromkeys([*first, *second])) for first in product for second in right]
    return product


def _bounded(sets: list[list[str]]) -> list[list[str]]:
    if len(sets) > MAX_SETS:
        raise MatrixError(f"more than {MAX_SETS:,} combinations")
    return sets


def solve(
    sets: Sequence[Sequence[str]], evict_costs: Mapping[str, int], running: Sequence[str], target: str
) -> list[str]:
    """Models to stop so that `target` can run: the cheapest set that holds it, the first one on ties.

    Sets are expanded. A target in no set stops everything; one that runs already stops nothing.
    """
    if target in running:
        return []
    candidates = [set(members) for members in sets if target in members]
    if not candidates:
        return list(running)
    outside = [[model for model in running if model not in members] for members in candidates]
    return min(outside, key=lambda models: sum(evict_costs.get(model, 1) for model in models))
