"""Marks of jobs, empty files in the worker's own folder: that one is to stop, that one was begun. Imports no Django."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from quartermaster_site import env

_KEEP_SECONDS = 24 * 3600
_KEEP_BEGUN_SECONDS = 3 * 24 * 3600
"""Longer than any broker keeps a message that nobody confirmed."""


def _folder(name: str = "cancel") -> Path:
    folder = env.prepared_data_dir() / "worker" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _clear_old(folder: Path, seconds: float) -> None:
    oldest = time.time() - seconds
    for mark in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if mark.stat().st_mtime < oldest:
                mark.unlink(missing_ok=True)


def leave(job: int) -> None:
    """Ask the task of this job to stop. Marks that nobody collected for a day are removed."""
    folder = _folder()
    _clear_old(folder, _KEEP_SECONDS)
    (folder / str(int(job))).touch(mode=0o600)


def claim(job: int, token: str) -> bool:
    """Whether this job is begun for the first time: a message that comes twice does its work once.

    The token tells jobs of the same number apart, where the server's database was made anew.
    """
    folder = _folder("begun")
    _clear_old(folder, _KEEP_BEGUN_SECONDS)
    name = hashlib.sha256(f"{int(job)} {token}".encode()).hexdigest()[:32]
    try:
        (folder / name).touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    return True


def place_of(job: int) -> str:
    """The path of a job's mark, for those who ask often whether it is there."""
    return str(_folder() / str(int(job)))


def is_left(job: int) -> bool:
    return os.path.exists(place_of(job))


def clear(job: int) -> None:
    (_folder() / str(int(job))).unlink(missing_ok=True)
