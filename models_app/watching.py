"""A host's looks at its folders between scans (web.md J-08): one walk, nothing opened. Imports no Django.

The control side says which folders, and which state of them it has; it hears whether they are still like that. What a
scan has listed stays in this process' memory, so that a file that is being written need not hide other changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from models_app.core.discovery.changes import Baseline, Difference, baseline_of, compare
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.roots import Root
from models_app.core.discovery.walk import list_files
from models_app.core.readers.cache import PARSER_VERSION
from quartermaster_site.version import product_version

_looking = threading.Lock()
_baselines: list[Baseline] = []


def fingerprint_of(listing: Listing) -> str:
    """Equal where a scan would store the same again: by this version of the product, of the same files."""
    return _marked(listing.fingerprint)


def _marked(fingerprint: str) -> str:
    return f"{product_version()[:32]}:{PARSER_VERSION}:{fingerprint}"


def remember(listing: Listing) -> str:
    """What a scan has listed is what later looks are compared with. Returns its fingerprint."""
    _baselines[:] = [baseline_of(listing)]
    return _marked(_baselines[0].fingerprint)


def look(
    roots: Sequence[Root],
    seen: str,
    *,
    platform: str,
    should_stop: Callable[[], bool],
    may_see: Callable[[str], bool] | None = None,
    clock: Callable[[], int] = time.time_ns,
) -> dict[str, Any] | None:
    """The answer to the control side; None when a look is under way already or was stopped.

    `seen` is the fingerprint of the listing that the control side has.
    """
    if not _looking.acquire(blocking=False):
        return None
    try:
        started = time.monotonic()
        listing = list_files(roots, platform=platform, should_stop=should_stop, may_see=may_see)
        if listing.stopped:
            return None
        fingerprint = fingerprint_of(listing)
        difference = _difference(listing, fingerprint, seen, clock())
        return {
            "fingerprint": fingerprint,
            "changed": difference.changed,
            "growing": difference.growing,
            "seconds": round(time.monotonic() - started, 3),
        }
    finally:
        _looking.release()


def _difference(listing: Listing, fingerprint: str, seen: str, now_ns: int) -> Difference:
    """After a restart nothing is remembered: then a file that is being written counts like any other."""
    if fingerprint == seen:
        return Difference(changed=False, growing=0)
    if not _baselines or not seen.endswith(f":{_baselines[0].fingerprint}"):
        return Difference(changed=True, growing=0)
    difference = compare(listing, _baselines[0], now_ns)
    is_updated = seen.rpartition(":")[0] != fingerprint.rpartition(":")[0]
    return Difference(difference.changed or is_updated, difference.growing)
