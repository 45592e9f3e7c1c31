"""Cancel marks: empty files in the worker's own folder, one per job. Imports no Django."""

from __future__ import annotations

import os
import time
from pathlib import Path

from quartermaster_site import env

_KEEP_SECONDS = 24 * 3600


def _folder() -> Path:
    folder = env.prepared_data_dir() / "worker" / "cancel"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def leave(job: int) -> None:
    """Ask the task of this job to stop. Marks that nobody collected for a day are removed."""
    folder = _folder()
    oldest = time.time() - _KEEP_SECONDS
    for mark in folder.iterdir():
        if mark.stat().st_mtime < oldest:
            mark.unlink(missing_ok=True)
    (folder / str(int(job))).touch(mode=0o600)


def place_of(job: int) -> str:
    """The path of a job's mark, for those who ask often whether it is there."""
    return str(_folder() / str(int(job)))


def is_left(job: int) -> bool:
    return os.path.exists(place_of(job))


def clear(job: int) -> None:
    (_folder() / str(int(job))).unlink(missing_ok=True)
