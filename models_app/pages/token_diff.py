"""Two commands word by word, for a page that shows them side by side."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.export.secrets import SECRET_FLAGS
from quartermaster_site.access.redaction import mask, redact

Part = tuple[str, bool]
"""Text, and whether the other command lacks it."""


@dataclass(frozen=True, slots=True)
class TokenDiff:
    identical: bool
    known: bool
    """There is a second command; none where its model could not be planned."""
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    removed: int
    added: int


def token_diff(before: Sequence[str], after: Sequence[str]) -> TokenDiff:
    """`before` against `after`; runs of words with the same mark are one part."""
    old, new = _masked(before), _masked(after)
    left: list[Part] = []
    right: list[Part] = []
    removed = added = 0
    for word, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        same = word == "equal"
        if b > a:
            left.append((" ".join(old[a:b]), not same))
        if d > c:
            right.append((" ".join(new[c:d]), not same))
        removed += 0 if same else b - a
        added += 0 if same else d - c
    identical = list(before) == list(after)
    return TokenDiff(identical, bool(after), tuple(left), tuple(right), removed, added)


def _masked(words: Sequence[str]) -> list[str]:
    found = []
    secret = False
    for word in words:
        found.append(mask(word) if secret else str(redact(word)))
        secret = word in SECRET_FLAGS
    return found
