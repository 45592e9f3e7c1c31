"""Reading JSON objects member by member, so that memory depends on one member and not on the file.

Headers of safetensors files and `config.json` come from strangers: the standard decoder would build all of it at once.
Structure is found by a linear scan; only members that are asked for are decoded.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import BinaryIO

_CHUNK_BYTES = 1 << 16
_MAX_DEPTH = 256
_MAX_TOKENS = 600_000
_MAX_NAME_CHARACTERS = 1 << 20
_BLANK = re.compile(r"[ \t\n\r]*+")
_SCALAR = re.compile(r'[^"\[\]{},:\s]++')
_STRING_RUN = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_NESTED_RUN = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"|\[[^"\[\]{}]*+\]|\{[^"\[\]{}]*+\})*+', re.DOTALL)
"""Inside a value: everything up to the next bracket that opens or closes something deeper. No pattern steps back."""


_PLAIN_NAME = re.compile(r'[ \t\n\r]*+"([^"\\\x00-\x1f]*+)"[ \t\n\r]*+:')
_PLAIN_STRING = re.compile(r'"([^"\\\x00-\x1f]*+)"')
"""The usual spelling, in one look; anything else is taken apart."""


class JsonPullError(ValueError):
    """Not the JSON that was expected, or more of it than anyone needs."""


class _Skipped:
    """Stands for a value that was too large to be of interest."""


SKIPPED = _Skipped()


class JsonPull:
    """A cursor over JSON text of `size_bytes` bytes. Every method raises JsonPullError for text that is not JSON."""

    def __init__(self, stream: BinaryIO, size_bytes: int) -> None:
        self._stream = stream
        self._left = size_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._text = ""
        self._pos = 0
        self._tokens = 0
        self.bytes_read = 0

    def members(self) -> Iterator[str]:
        """Names of the members of the object at the cursor. The caller takes or skips each value before it goes on."""
        self._expect("{")
        if self._peek() == "}":
            self._pos += 1
            return
        while True:
            plain = _PLAIN_NAME.match(self._text, self._pos)
            if plain is not None:
                self._pos = plain.end()
                self._count(1)
                yield plain[1]
            else:
                yield self._name()
            if self._expect(",}") == "}":
                return

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take the value at the cursor by a pattern, when it stands there whole: the fast path for known shapes."""
        self._peek()
        found = pattern.match(self._text, self._pos)
        if found is None and len(self._text) - self._pos < _CHUNK_BYTES // 2 and self._more():
            found = pattern.match(self._text, self._pos)
        if found is not None:
            self._pos = found.end()
            self._count(1)
        return found

    def value(self, limit: int = 1 << 16) -> object:
        """The value at the cursor, SKIPPED when its text is longer than `limit` characters."""
        plain = self.match(_PLAIN_STRING)
        if plain is not None:
            return plain[1] if len(plain[1]) <= limit else SKIPPED
        raw = self._walk(limit)
        if raw is None:
            return SKIPPED
        try:
            return json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise JsonPullError(str(error)) from error

    def skip(self) -> None:
        """Step over the value at the cursor."""
        self._walk(0)

    def finish(self) -> None:
        """Nothing but blanks may follow."""
        if self._peek():
            raise JsonPullError("text after the end")

    def _name(self) -> str:
        if self._peek() != '"':
            raise JsonPullError("a member name was expected")
        while True:
            try:
                name, end = scanstring(self._text, self._pos + 1, True)
            except ValueError as error:
                if len(self._text) - self._pos > _MAX_NAME_CHARACTERS or not self._more():
                    raise JsonPullError(f"a broken member name: {error}") from error
            else:
                self._pos = end
                self._count(1)
                self._expect(":")
                return str(name)

    def _walk(self, limit: int) -> str | None:
        """Step over one value; its text when that is at most `limit` characters long."""
        kept = _Kept(limit)
        if not self._peek():
            raise JsonPullError("a value was expected")
        depth = 0
        while True:
            depth = self._token(depth, kept)
            if depth == 0:
                return kept.text()

    def _token(self, depth: int, kept: _Kept) -> int:
        """Step over one bracket, one string, or a run between them; returns the new depth."""
        if self._pos >= len(self._text) and not self._more():
            raise JsonPullError("the text ends inside a value")
        self._count(1)
        if depth:
            self._advance(_end(_NESTED_RUN, self._text, self._pos), kept)
            if self._pos >= len(self._text):
                return depth
        character = self._text[self._pos]
        if character == '"':
            self._string(kept)
            return depth
        if character in "[{":
            if depth >= _MAX_DEPTH:
                raise JsonPullError("nested too deep")
            self._advance(self._pos + 1, kept)
            return depth + 1
        if character in "]}" and depth:
            self._advance(self._pos + 1, kept)
            return depth - 1
        self._scalar(kept)
        return depth

    def _scalar(self, kept: _Kept) -> None:
        """A number or word outside all brackets."""
        start = self._pos
        while True:
            end = _end(_SCALAR, self._text, self._pos)
            if end == start:
                raise JsonPullError("a value was expected")
            self._advance(end, kept)
            if end < len(self._text) or not self._more():
                return
            start = -1

    def _string(self, kept: _Kept) -> None:
        self._advance(self._pos + 1, kept)
        while True:
            self._advance(_end(_STRING_RUN, self._text, self._pos), kept)
            if self._text[self._pos : self._pos + 1] == '"':
                self._advance(self._pos + 1, kept)
                return
            # what is left is nothing, or the backslash of an escape that was cut
            if not self._more():
                raise JsonPullError("the text ends inside a string")

    def _advance(self, end: int, kept: _Kept) -> None:
        kept.add(self._text, self._pos, end)
        self._pos = end

    def _peek(self) -> str:
        """The next character that is not blank, "" at the end."""
        while True:
            self._pos = _end(_BLANK, self._text, self._pos)
            if self._pos < len(self._text):
                return self._text[self._pos]
            if not self._more():
                return ""

    def _expect(self, characters: str) -> str:
        found = self._peek()
        if not found or found not in characters:
            raise JsonPullError(f"one of {characters} was expected")
        self._pos += 1
        return found

    def _more(self) -> bool:
        """Append the next chunk and forget what was consumed; False at the end."""
        raw = self._stream.read(min(_CHUNK_BYTES, self._left)) if self._left else b""
        self._left = self._left - len(raw) if raw else 0
        self.bytes_read += len(raw)
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise JsonPullError(f"not UTF-8: {error.reason}") from error
        self._text = self._text[self._pos :] + text
        self._pos = 0
        return bool(raw)

    def _count(self, tokens: int) -> None:
        self._tokens += tokens
        if self._tokens > _MAX_TOKENS:
            raise JsonPullError("more members and values than any model needs")


class _Kept:
    """The text of a value while it is stepped over, as long as it is short enough to be wanted."""

    __slots__ = ("_left", "_parts")

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._parts: list[str] = []

    def add(self, text: str, start: int, end: int) -> None:
        self._left -= end - start
        if self._left >= 0:
            self._parts.append(text[start:end])
        else:
            self._parts.clear()

    def text(self) -> str | None:
        return "".join(self._parts) if self._left >= 0 else None


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where a match at `start` ends; `start` itself without one."""
    found = pattern.match(text, start)
    return found.end() if found is not None else start
