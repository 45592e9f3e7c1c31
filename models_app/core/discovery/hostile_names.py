"""File names that must not travel further: they could break a config, a page or a database.

A name that a config would read as something else (`${...}` is a macro there, a line break ends a line) cannot be quoted
away in every dialect, so such a file is reported and left out. Quotes, blanks and any script of the world are fine.
"""

from __future__ import annotations

import re
import unicodedata

MACRO = "${"
_BLOCKING_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, undecodable bytes (lone surrogates), and the two Unicode line breaks."""
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that turn the text around them: a name, and the config line it stands in, would read as something else."""
_PLAIN = re.compile(r"[ -~]*", re.ASCII)


def unsafe_reason(text: str) -> str:
    """Why a name cannot be used, or "" when it can."""
    if MACRO in text:
        return "the name contains ${, which a router reads as a macro"
    if _PLAIN.fullmatch(text):
        return ""
    for character in text:
        category = unicodedata.category(character)
        if category == "Cs":
            return "the name is not valid UTF-8"
        if category in _BLOCKING_CATEGORIES:
            return "the name contains a line break or another control character"
        if character in _DIRECTIONS:
            return "the name contains a mark that turns the direction of text"
    return ""


def printable(text: str) -> str:
    """The name on one line and valid as UTF-8: bytes and control characters as backslash escapes."""
    if _PLAIN.fullmatch(text):
        return text
    decoded = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(
        character
        if unicodedata.category(character) not in _BLOCKING_CATEGORIES and character not in _DIRECTIONS
        else character.encode("unicode_escape").decode("ascii")
        for character in decoded
    )
