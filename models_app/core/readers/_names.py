"""Names out of headers: how they are remembered and how they are shown."""

from __future__ import annotations

import re

from models_app.core.readers.limits import MAX_SHORT_TEXT

_WHOLE_LENGTH = 64
_PLAIN = re.compile(rf"[A-Za-z0-9._+-]{{1,{MAX_SHORT_TEXT}}}")


def is_plain(text: str) -> bool:
    """May this name go into commands and files? A header comes from anywhere; a line break in it would add lines."""
    return _PLAIN.fullmatch(text) is not None


def compact_name(name: bytes | str) -> bytes | str | int:
    """What stands for a name in a set of seen ones. Long names shrink to a hash, so that endless ones cannot fill the
    memory; two that collide would have to be built on purpose, and then only their own file is refused."""
    return name if len(name) <= _WHOLE_LENGTH else hash(name)


def printable(raw: bytes, limit: int = 80) -> str:
    """A name for a message: one line, no control characters, not endless."""
    text = raw[:limit].decode("utf-8", "replace") + ("…" if len(raw) > limit else "")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
