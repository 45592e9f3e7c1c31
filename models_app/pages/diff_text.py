"""The text diff as lines of a page: numbers of both sides, changed words marked, what looks secret masked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models_app.core.export.revisions.text_diff import DiffLine, TextDiff, text_diff
from models_app.core.export.stamp import HEADER_LINES
from models_app.models import Revision
from quartermaster_site.access.redaction import redact
from quartermaster_site.figures import counted

_CSS = {"+": "a", "-": "d", "@": "h", " ": ""}
_WORDS = re.compile(r"\s+|\S+")


@dataclass(frozen=True, slots=True)
class Line:
    """`parts` are (text, changed?). The mark is a character, so that colour is never alone."""

    css: str
    mark: str
    parts: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class TextView:
    lines: tuple[Line, ...]
    summary: str
    cut: bool


def text_view(before: Revision | None, after: Revision) -> TextView:
    """From one revision's body to another's; from nothing where there was none. Headers hold times and numbers."""
    return texts_view(before.text if before else "", after.text, skipped=HEADER_LINES + 1)


def texts_view(before: str, after: str, *, skipped: int = 0) -> TextView:
    """From one text to another. The first `skipped` lines of both are not compared."""
    found = text_diff(before, after, skipped=skipped)
    return TextView(tuple(_lines(found)), _summary(found), found.cut)


def _summary(diff: TextDiff) -> str:
    return f"{counted(diff.removed, 'line')} removed, {diff.added:,} added"


def _lines(diff: TextDiff) -> Iterator[Line]:
    """A run of removed lines with as many added ones behind it is compared word by word."""
    lines = diff.lines
    at = 0
    while at < len(lines):
        gone = _run(lines, at, "-")
        come = _run(lines, at + len(gone), "+") if gone else []
        if gone and len(gone) == len(come):
            pairs = [_marked(old.text, new.text) for old, new in zip(gone, come, strict=True)]
            yield from (Line("d", "-", old) for old, _ in pairs)
            yield from (Line("a", "+", new) for _, new in pairs)
            at += len(gone) + len(come)
        else:
            line = lines[at]
            yield Line(_CSS[line.mark], line.mark, ((str(redact(line.text)), False),))
            at += 1


def _run(lines: Sequence[DiffLine], start: int, mark: str) -> list[DiffLine]:
    end = start
    while end < len(lines) and lines[end].mark == mark:
        end += 1
    return list(lines[start:end])


def _marked(before: str, after: str) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    old, new = (_WORDS.findall(str(redact(text))) for text in (before, after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    parts_old, parts_new = [], []
    for tag, i, end_i, j, end_j in matcher.get_opcodes():
        parts_old.append(("".join(old[i:end_i]), tag != "equal"))
        parts_new.append(("".join(new[j:end_j]), tag != "equal"))
    return tuple(part for part in parts_old if part[0]), tuple(part for part in parts_new if part[0])
