"""A unified diff of two texts that stays fast for files of many thousand lines, and whose length is bounded.

Lines that stand once in both texts, in the same order, are anchors (patience diff); only what lies between two anchors
is compared line by line.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

CONTEXT = 3
MAX_LINES = 4000
MAX_LINE = 500
MAX_GAP = 4_000_000
"""Pairs of lines between two anchors beyond which the gap counts as wholly replaced."""

Mark = Literal["+", "-", " ", "@"]
Block = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line. Numbers count from 1; 0 where the line is not on that side. "@" separates two places."""

    mark: Mark
    text: str
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class TextDiff:
    """`added` and `removed` count all changed lines, `lines` holds the first `MAX_LINES`."""

    lines: tuple[DiffLine, ...] = ()
    added: int = 0
    removed: int = 0
    cut: bool = False


def text_diff(before: str, after: str, *, skipped: int = 0, most: int = MAX_LINES) -> TextDiff:
    """What differs, with three lines of context. The first `skipped` lines of both (a header) are not compared."""
    old, new = before.splitlines(), after.splitlines()
    same = new[:skipped]
    old, new = [*same, *old[skipped:]], [*same, *new[skipped:]]
    changed = list(_changed_blocks(old, new))
    removed = sum(block[1] - block[0] for block in changed)
    added = sum(block[3] - block[2] for block in changed)
    lines: list[DiffLine] = []
    for line in _hunks(changed, old, new):
        if len(lines) == most:
            return TextDiff(tuple(lines), added, removed, cut=True)
        lines.append(line)
    return TextDiff(tuple(lines), added, removed)


def _changed_blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    """(first, end) in the old and in the new text of each place that differs, in order, none adjacent to another."""
    i = j = 0
    for next_i, next_j in [*_anchors(old, new), (len(old), len(new))]:
        yield from _gap(old, new, (i, next_i, j, next_j))
        i, j = next_i + 1, next_j + 1


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest run of unique common lines that are in the same order in both texts."""
    counts, others = Counter(old), Counter(new)
    where = {line: n for n, line in enumerate(new) if others[line] == 1}
    pairs = [(n, where[line]) for n, line in enumerate(old) if counts[line] == 1 and line in where]
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for n, (_, j) in enumerate(pairs):
        place = bisect_left(tails, j)
        back.append(ends[place - 1] if place else -1)
        tails[place : place + 1] = [j]
        ends[place : place + 1] = [n]
    chain = []
    n = ends[-1] if ends else -1
    while n >= 0:
        chain.append(pairs[n])
        n = back[n]
    return chain[::-1]


def _gap(old: Sequence[str], new: Sequence[str], block: Block) -> Iterator[Block]:
    """The differences inside one gap: equal lines at its ends are taken off first."""
    i, end_i, j, end_j = block
    while i < end_i and j < end_j and old[i] == new[j]:
        i, j = i + 1, j + 1
    while i < end_i and j < end_j and old[end_i - 1] == new[end_j - 1]:
        end_i, end_j = end_i - 1, end_j - 1
    if i == end_i and j == end_j:
        return
    if (end_i - i) * (end_j - j) > MAX_GAP or i == end_i or j == end_j:
        yield i, end_i, j, end_j
        return
    matcher = difflib.SequenceMatcher(None, old[i:end_i], new[j:end_j], autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag != "equal":
            yield i + a, i + a_end, j + b, j + b_end


def _hunks(changed: Sequence[Block], old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    """The lines to show: each difference with its surroundings, a mark between places that do not touch."""
    shown = 0
    for n, (i, end_i, j, end_j) in enumerate(changed):
        start = max(shown, i - CONTEXT)
        if start > shown or n == 0:
            yield DiffLine("@", f"line {start + 1 + j - i:,}")
        yield from _same(old, start, i, j - i)
        yield from (DiffLine("-", old[k][:MAX_LINE], before=k + 1) for k in range(i, end_i))
        yield from (DiffLine("+", new[k][:MAX_LINE], after=k + 1) for k in range(j, end_j))
        following = changed[n + 1][0] if n + 1 < len(changed) else len(old)
        shown = min(following, end_i + CONTEXT)
        yield from _same(old, end_i, shown, end_j - end_i)


def _same(lines: Sequence[str], start: int, end: int, shift: int) -> Iterator[DiffLine]:
    for k in range(start, end):
        yield DiffLine(" ", lines[k][:MAX_LINE], before=k + 1, after=k + 1 + shift)
