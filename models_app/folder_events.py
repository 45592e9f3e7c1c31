"""Word from the operating system that something stirs in a folder, where watchfiles can get it. Imports no Django.

Only a hint to look sooner: shares send no events, and a system may run out of watches. What counts are the looks.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from celery.signals import worker_shutting_down

from models_app.core.discovery.changes import QUIET_SECONDS
from models_app.core.discovery.listing import is_kept

log = logging.getLogger(__name__)
_GATHER_MS = 2_000
_STEP_MS = 500
_POLL_MS = 60_000
_RETRY_SECONDS = 600.0
_over = threading.Event()
_lock = threading.Lock()
_followers: list[_Follower] = []


class _Follower(threading.Thread):
    """Follows one set of folders until it is stopped, or until they cannot be followed."""

    def __init__(self, paths: tuple[str, ...], tell: Callable[[], None]) -> None:
        super().__init__(name="folder-events", daemon=True)
        self.paths, self.tell = paths, tell
        self.stopped = threading.Event()
        self.failed_at = 0.0

    @property
    def is_good(self) -> bool:
        """Still at work, or failed too short a time ago to try again."""
        return self.is_alive() or time.monotonic() < self.failed_at + _RETRY_SECONDS

    def run(self) -> None:
        try:
            import watchfiles

            batches = watchfiles.watch(
                *self.paths,
                watch_filter=_matters,
                debounce=_GATHER_MS,
                step=_STEP_MS,
                stop_event=self.stopped,
                force_polling=False,
                poll_delay_ms=_POLL_MS,
                ignore_permission_denied=True,
            )
            for _ in batches:
                self.tell()
                self.stopped.wait(QUIET_SECONDS)
        except Exception as error:  # whatever it is: looking works without
            log.info("no events for %s: %s", ", ".join(self.paths), error)
        if not self.stopped.is_set():
            self.failed_at = time.monotonic()


def follow(paths: Sequence[str], tell: Callable[[], None]) -> None:
    """Have `tell` called from now on when files come, go or change below these folders, and below no others."""
    wanted = tuple(sorted(paths))
    with _lock:
        if _over.is_set() or any(one.paths == wanted and one.is_good for one in _followers):
            return
        _stop()
        if wanted:
            _followers.append(_Follower(wanted, tell))
            _followers[0].start()


def is_over() -> bool:
    """Whether this worker is going down."""
    return _over.is_set()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def stop(**_: Any) -> None:
    """No more word from any folder."""
    _over.set()
    with _lock:
        _stop()


def _stop() -> None:
    for one in _followers:
        one.stopped.set()
    _followers.clear()


def _matters(change: Any, path: str) -> bool:
    """Any file may come or go; only those that a listing keeps are worth a look when they grow."""
    return change.name != "modified" or is_kept(os.path.basename(path))
