"""Word from the operating system that something stirs in a folder, where watchfiles can get it. Imports no Django.

Only a hint to look sooner: shares send no events, and a system may run out of watches. What counts are the looks.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
_followers: dict[str, _Follower] = {}
"""What is followed, by purpose."""
_FILE_REST_SECONDS = 2.0


@dataclass(frozen=True)
class _Wish:
    """What is to be followed: folders with all below them, or one file in a folder."""

    paths: tuple[str, ...]
    file_name: str = ""

    def matters(self, change: Any, path: str) -> bool:
        """Any file may come or go; only those that a listing keeps are worth a look when they grow."""
        name = os.path.basename(path)
        if self.file_name:
            return name == self.file_name
        return change.name != "modified" or is_kept(name)


class _Follower(threading.Thread):
    """Follows one wish until it is stopped, or until that cannot be followed."""

    def __init__(self, wish: _Wish, tell: Callable[[], None]) -> None:
        super().__init__(name="folder-events", daemon=True)
        self.wish, self.tell = wish, tell
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
                *self.wish.paths,
                watch_filter=self.wish.matters,
                debounce=_GATHER_MS,
                step=_STEP_MS,
                stop_event=self.stopped,
                force_polling=False,
                poll_delay_ms=_POLL_MS,
                ignore_permission_denied=True,
                recursive=not self.wish.file_name,
            )
            for _ in batches:
                self.tell()
                self.stopped.wait(_FILE_REST_SECONDS if self.wish.file_name else QUIET_SECONDS)
        except Exception as error:  # whatever it is: looking works without
            log.info("no events for %s: %s", ", ".join(self.wish.paths), error)
        if not self.stopped.is_set():
            self.failed_at = time.monotonic()


def follow(paths: Sequence[str], tell: Callable[[], None]) -> None:
    """Have `tell` called from now on when files come, go or change below these folders, and below no others."""
    _take("folders", _Wish(tuple(sorted(paths))), tell)


def follow_file(path: str, tell: Callable[[], None]) -> None:
    """The same for one file, beside the folders. What is followed is its folder: a rename makes another file."""
    folder, name = os.path.split(path)
    _take("file", _Wish((folder,), name), tell)


def _take(purpose: str, wish: _Wish, tell: Callable[[], None]) -> None:
    """One follower for each purpose; a new wish takes the place of the old one."""
    with _lock:
        held = _followers.get(purpose)
        if _over.is_set() or (held is not None and held.wish == wish and held.is_good):
            return
        _stop(purpose)
        if wish.paths:
            _followers[purpose] = _Follower(wish, tell)
            _followers[purpose].start()


def is_over() -> bool:
    """Whether this worker is going down."""
    return _over.is_set()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def stop(**_: Any) -> None:
    """No more word from any folder."""
    _over.set()
    with _lock:
        for purpose in list(_followers):
            _stop(purpose)


def _stop(purpose: str) -> None:
    if held := _followers.pop(purpose, None):
        held.stopped.set()
