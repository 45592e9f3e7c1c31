"""Room on the file systems below some folders, through psutil. A share that does not answer holds nobody up."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

from gpus_app.core.readings import DiskReading

SILENT = "does not answer"


def read(path: str) -> DiskReading:
    """One folder; one that is gone has no figures, instead of those of the disk that is there in its place."""
    import psutil

    try:
        os.stat(path)
        usage = psutil.disk_usage(path)
    except (OSError, ValueError) as error:
        return DiskReading(path, problem=getattr(error, "strerror", "") or str(error))
    return DiskReading(path, int(usage.total), int(usage.free))


class Disks:
    """Readings of folders, each made in a thread of its own, because a dead network share blocks whoever asks it."""

    def __init__(self) -> None:
        self._known: dict[str, DiskReading] = {}
        self._threads: dict[str, threading.Thread] = {}

    def read(self, paths: Sequence[str], wait_seconds: float) -> tuple[DiskReading, ...]:
        """In the order of `paths`; one that is not there in time is said not to answer, and asked once only."""
        for path in paths:
            if path not in self._threads:
                self._threads[path] = threading.Thread(target=self._read, args=(path,), name="disk", daemon=True)
                self._threads[path].start()
        end = time.monotonic() + wait_seconds
        for path in paths:
            self._threads[path].join(max(0.0, end - time.monotonic()))
        self._threads = {path: thread for path, thread in self._threads.items() if thread.is_alive()}
        silent = set(self._threads)
        return tuple(DiskReading(path, problem=SILENT) if path in silent else self._known[path] for path in paths)

    def _read(self, path: str) -> None:
        self._known[path] = read(path)
