"""Rules and labels from the name of one released file (classes.md 16.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SEPARATORS = re.compile(r"([-_.+])")
_VERSION = re.compile(
    r"(?:v?\d+|[br]\d+|[0-9a-f]{7,40}|v?\d+[a-z]+\d+|(?:rc|alpha|beta|pre)\d+)\Z",
    re.IGNORECASE,
)
_ARCHIVE_WORDS = frozenset({"zip", "tar", "gz", "tgz", "xz", "bz2", "7z", "exe", "dmg"})
_NOISE = frozenset({"bin", "x64", "amd64"})
LABEL_WORDS = 4
_WILDCARD = ""
"""Stands for a run of version tokens; no token of a name is empty."""


def is_version(token: str) -> bool:
    """Does this part of a name change from release to release? A word of hexadecimal letters alone does not."""
    return bool(_VERSION.match(token)) and any(character.isdigit() for character in token)


def derive_rule(pick: str, assets: Sequence[str]) -> str:
    """A regular expression for the file that was picked, whatever its version.

    It matches no other file of the same release: version parts become literal again from the right until that holds.
    """
    parts = _parts(pick)
    if all(part == _WILDCARD for part, _ in parts):
        return re.escape(pick)
    while True:
        rule = _expression(parts)
        if sum(bool(re.fullmatch(rule, asset)) for asset in assets) <= 1:
            return rule
        wild = [index for index, (part, _) in enumerate(parts) if part == _WILDCARD]
        if not wild:
            return re.escape(pick)
        parts[wild[-1]] = (parts[wild[-1]][1], parts[wild[-1]][1])


def _parts(name: str) -> list[tuple[str, str]]:
    """(wildcard or literal, what stood there) in order; neighbouring version tokens are one wildcard."""
    tokens = _SEPARATORS.split(name)
    parts: list[tuple[str, str]] = []
    for index, token in enumerate(tokens):
        if index % 2 == 0 and is_version(token):
            if len(parts) > 1 and parts[-2][0] == _WILDCARD:
                separator = parts.pop()[1]
                parts[-1] = (_WILDCARD, parts[-1][1] + separator + token)
            else:
                parts.append((_WILDCARD, token))
        elif token:
            parts.append((token, token))
    return parts


def _expression(parts: Iterable[tuple[str, str]]) -> str:
    return "".join(".+" if part == _WILDCARD else re.escape(part) for part, _ in parts)


def suggest_label(asset: str) -> str:
    """Words that tell one file of a release from the others: no versions, no archive endings, at most four."""
    words = [token for token in _SEPARATORS.split(asset)[::2] if token]
    kept = [word for word in words if not is_version(word) and word.lower() not in _ARCHIVE_WORDS | _NOISE]
    return " ".join(kept[-LABEL_WORDS:])


def closest_asset(wanted: str, assets: Sequence[str]) -> tuple[str, float]:
    """The most similar name after an upstream rename and how similar it is, 0 to 100; ("", 0) for no names."""
    mine = _tokens(wanted)
    scored = [(100.0 * len(mine & _tokens(asset)) / len(mine | _tokens(asset)), asset) for asset in assets]
    score, name = max(scored, default=(0.0, ""), key=lambda item: item[0])
    return name, score


def _tokens(name: str) -> set[str]:
    return {token.lower() for token in _SEPARATORS.split(name)[::2] if token}
