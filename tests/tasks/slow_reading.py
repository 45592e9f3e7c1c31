"""Loaded by a host worker of a test: files of a folder are read slowly while a mark lies beside the folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from celery.signals import worker_ready

from quartermaster_site import env

_SLOW_SECONDS = 0.01
"""For each file; a report goes out each half second."""


def slow_mark(folder: Path) -> Path:
    return folder.with_suffix(".slow")


@worker_ready.connect
def make_reading_slow(**_: Any) -> None:
    if env.role() != "host":
        return
    from models_app import scanning

    read = scanning.read_candidate

    def read_slowly(candidate: Any, cache: Any) -> Any:
        if slow_mark(Path(candidate.path).parent).exists():
            time.sleep(_SLOW_SECONDS)
        return read(candidate, cache)

    scanning.read_candidate = read_slowly
