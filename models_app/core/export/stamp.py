"""The fourth header line of a published file (web.md 11.2): whose it is, which revision, and the hash of its body.

The line makes a file "ours"; its hash tells an edit by hand from our own text without any database.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HEADER_LINES = 3
_LINE = re.compile(r"[#;] Published: host ([a-z0-9-]{1,40}), revision ([0-9]{1,9}), sha256 ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the line of a file says, and whether the body still matches it."""

    host: str
    revision: int
    body_sha256: str
    intact: bool


def body_of(text: str) -> str:
    """What follows the header lines of an unstamped text: the part that holds no time."""
    return "".join(text.splitlines(keepends=True)[HEADER_LINES:])


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def content_digest(text: str, companions: Iterable[Mapping[str, str]] = ()) -> str:
    """Two unstamped texts with the same digest, and the same files beside them, are the same config."""
    beside = "".join(f"\0{item['name']}\0{item['text']}" for item in companions)
    return sha256_of(body_of(text) + beside)


def stamped(text: str, *, host: str, revision: int) -> str:
    """The text with its fourth line. The comment character is that of the first line."""
    lines = text.splitlines(keepends=True)
    head, body = lines[:HEADER_LINES], "".join(lines[HEADER_LINES:])
    mark = head[0][:1] if head else "#"
    line = f"{mark} Published: host {host}, revision {revision}, sha256 {sha256_of(body)}\n"
    return "".join(head) + line + body


def unstamped(text: str) -> str:
    """The text without its fourth line."""
    return "".join(line for line in text.splitlines(keepends=True) if not _LINE.fullmatch(line.strip()))


def read_stamp(text: str) -> Stamp | None:
    """The stamp of a file, None where there is none: such a file is somebody else's."""
    lines = text.splitlines(keepends=True)
    for position, line in enumerate(lines[: HEADER_LINES + 1]):
        found = _LINE.fullmatch(line.strip())
        if found:
            body = "".join(lines[position + 1 :])
            return Stamp(found[1], int(found[2]), found[3], sha256_of(body) == found[3])
    return None
