"""Whole-text globs over paths and ids: `*` is any run, separators included, `?` one character, the rest is literal."""

from __future__ import annotations

import re
from functools import lru_cache


def glob_match(pattern: str, text: str) -> bool:
    """Case never matters, on any system, and both slashes are the same."""
    return _compiled(pattern).fullmatch(_folded(text)) is not None


def is_glob(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def _folded(text: str) -> str:
    return text.replace("\\", "/").lower()


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    head, *rest = [
        "".join("." if char == "?" else re.escape(char) for char in part) for part in _folded(pattern).split("*")
    ]
    if not rest:
        return re.compile(head, re.DOTALL)
    *middle, tail = rest
    # The leftmost place of each part is as good as any, so nothing is tried twice: a pattern cannot be made slow.
    anywhere = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{head}{anywhere}.*{tail}", re.DOTALL)
