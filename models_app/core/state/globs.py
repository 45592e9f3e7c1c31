"""Whole-text globs over paths and ids: `*` is any run, separators included, `?` one character, the rest is literal."""

from __future__ import annotations

import re
from functools import lru_cache


def glob_match(pattern: str, text: str) -> bool:
    """Case never matters, on any system, and both slashes are the same."""
    return _compiled(pattern).fullmatch(_folded(text)) is not None


def is_glob(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def covers_all(wide: str, narrow: str) -> bool:
    """Whether every text that `narrow` matches is one of `wide`. True is certain; a few exotic pairs are not seen."""
    # A pattern is read as a text here: what `?` of the wide one takes is one sign of the narrow one, but never its `*`.
    return _compiled(_in_order(wide), one="[^*]").fullmatch(_in_order(_folded(narrow))) is not None


def _in_order(pattern: str) -> str:
    """The same pattern with the `?` of each run of wildcards first and one `*` at most: `*?*` -> `?*`."""
    return re.sub(r"[*?]+", lambda run: "?" * run[0].count("?") + "*" * ("*" in run[0]), pattern)


def _folded(text: str) -> str:
    return text.replace("\\", "/").lower()


@lru_cache(maxsize=4096)
def _compiled(pattern: str, one: str = ".") -> re.Pattern[str]:
    head, *rest = [
        "".join(one if char == "?" else re.escape(char) for char in part) for part in _folded(pattern).split("*")
    ]
    if not rest:
        return re.compile(head, re.DOTALL)
    *middle, tail = rest
    # The leftmost place of each part is as good as any, so nothing is tried twice: a pattern cannot be made slow.
    anywhere = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{head}{anywhere}.*{tail}", re.DOTALL)
