"""What is different on disk since a scan (web.md J-08): names, sizes and times of two listings, no file is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models_app.core.discovery.listing import Listing

QUIET_SECONDS = 10
"""A file that changed within this time is still being written."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A listing boiled down for comparisons, about a hundred bytes a file. Good in the process that made it."""

    fingerprint: str
    files: Mapping[int, int]
    """Hash of a path -> hash of its size and times."""
    rest: int
    """Hash of all else: roots, findings, what could not be read."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Whether something has changed for good, and the number of files that are still being written."""

    changed: bool
    growing: int


def baseline_of(listing: Listing) -> Baseline:
    files = {hash(entry.path): hash((entry.size_bytes, entry.mtime_ns, entry.ctime_ns)) for entry in listing.files}
    return Baseline(listing.fingerprint, files, _rest(listing))


def compare(listing: Listing, baseline: Baseline, now_ns: int) -> Difference:
    """What `listing` shows beside `baseline`. Files that are being written count when they have come to rest.

    A time that lies ahead, as on a share with a clock of its own, is as fresh as one that lies back as far.
    """
    seen = baseline_of(listing)
    changed = seen.rest != baseline.rest or not baseline.files.keys() <= seen.files.keys()
    growing = set()
    for entry in listing.files:
        key = hash(entry.path)
        if baseline.files.get(key) == seen.files[key]:
            continue
        if abs(now_ns - entry.mtime_ns) < QUIET_SECONDS * 1_000_000_000:
            growing.add(key)
        else:
            changed = True
    return Difference(changed, len(growing))


def _rest(listing: Listing) -> int:
    roots = tuple(part.root for part in listing.roots)
    return hash((roots, listing.findings, tuple(sorted(listing.cache_commits.items())), listing.unread))
