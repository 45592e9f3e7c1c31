"""Split sets: files named `...-00001-of-00003.gguf` are one model (discovery.md 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from models_app.core.catalog import FileEntry

_SHARD = re.compile(r"-([0-9]{5})-of-([0-9]{5})(?=\.(?:gguf|safetensors)$)", re.ASCII | re.IGNORECASE)
MAX_LISTED_MISSING = 64
"""A name may claim 99,999 parts; a list of the missing ones stays readable."""


@dataclass(frozen=True, slots=True)
class ShardName:
    """A shard's number (from 1), the size of its set, and the name with the suffix removed."""

    number: int
    count: int
    whole_name: str


def shard_name(name: str) -> ShardName | None:
    """Take a shard's name apart; None for a whole file. The suffix counts in any case."""
    match = _SHARD.search(name)
    if match is None:
        return None
    return ShardName(int(match[1]), int(match[2]), name[: match.start()] + name[match.end() :])


def strip_shard(name: str) -> str:
    """The name with a shard suffix removed."""
    shard = shard_name(name)
    return shard.whole_name if shard else name


@dataclass(frozen=True, slots=True)
class ShardSet:
    """The parts of one set that are on disk, by number."""

    whole_name: str
    count: int
    parts: tuple[FileEntry, ...]
    missing: tuple[int, ...]

    @property
    def has_first(self) -> bool:
        return bool(self.parts) and 1 not in self.missing


def shard_set(whole_name: str, count: int, parts: Iterable[tuple[int, FileEntry]]) -> ShardSet:
    """Put a set together. Numbers outside 1..count cannot belong to it and are left out."""
    numbered = {number: entry for number, entry in parts if 1 <= number <= count}
    missing: list[int] = []
    for number in range(1, count + 1):
        if number not in numbered:
            missing.append(number)
            if len(missing) == MAX_LISTED_MISSING:
                break
    return ShardSet(whole_name, count, tuple(numbered[number] for number in sorted(numbered)), tuple(missing))
