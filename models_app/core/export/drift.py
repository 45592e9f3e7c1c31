"""What became of a router's file since we wrote it: told by the hash of its bytes, never by its time (web.md 11.7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Case(StrEnum):
    """What lies at the path, against what was written there last."""

    NONE = ""
    EDITED = "edited"
    """Other bytes, below our header."""
    REPLACED = "replaced"
    """Other bytes, without our header."""
    REMOVED = "removed"
    UNREADABLE = "unreadable"
    RESTORED = "restored"
    """The bytes of an older text of ours."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file as its host reports it. `sha256` is "" for no file; `problem` says why it cannot be read."""

    sha256: str = ""
    has_header: bool = False
    problem: str = ""


def case_of(found: Found, *, written_sha256: str, is_older_text: bool) -> Case:
    """`written_sha256` is of the bytes that we wrote last; "" for never: then nothing can have drifted."""
    if not written_sha256 or (found.sha256 == written_sha256 and not found.problem):
        return Case.NONE
    if found.problem:
        return Case.UNREADABLE
    if not found.sha256:
        return Case.REMOVED
    if is_older_text:
        return Case.RESTORED
    return Case.EDITED if found.has_header else Case.REPLACED
