"""How the processes of `up` and of an agent are started: their commands, and an environment with what each may know."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from quartermaster_site import env, processes
from quartermaster_site.processes import Child

BASE_DIR = Path(__file__).resolve().parent.parent
HOST_SLOTS = 4
_NOT_FOR_HOSTS = ("QM_DATABASE_URL", "QM_SEALING_KEY", "DJANGO_SETTINGS_MODULE")
"""Proof of the split in every run: a host worker cannot even name the database."""
_NOT_FOR_AGENTS = (*_NOT_FOR_HOSTS, "QM_SECRET_KEY")
"""On the server's own machine the worker seals its messages with the installation's key; an agent has its own."""
ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""For the control worker: the C library would keep what planning thousands of models took, once more in each thread."""


def worker(
    name: str,
    *,
    role: str,
    queue: str,
    slots: int,
    more: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Child:
    """A Celery worker in threads for one queue."""
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", env.log_level()]
    pool = ["-P", "threads", "-c", str(slots), "-Q", queue, "-n", f"{name}@%h"]
    command = ["celery", "-A", "quartermaster_site.celery", "worker", *pool, *quiet, *more]
    return child(name, command, role=role, quit_signal=signal.SIGQUIT, settings=settings)


def child(
    name: str,
    command: Sequence[str],
    *,
    role: str,
    quit_signal: signal.Signals,
    settings: Mapping[str, str] | None = None,
) -> Child:
    """A Python module as a process of ours; `settings` are more `QM_*` variables for it."""
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    environment = {
        **(ALLOCATOR if role == "control" else {}),
        **os.environ,
        "QM_ROLE": role,
        "QM_DATA_DIR": str(env.data_dir()),
        "PYTHONPATH": os.pathsep.join([str(BASE_DIR), *inherited]),
        "PYTHONUNBUFFERED": "1",
        # Each worker would run all system checks at its start, for half a second.
        "CELERY_SKIP_CHECKS": "1",
        **(settings or {}),
    }
    for variable in settings or {}:
        environment.pop(f"{variable}_FILE", None)
    if role == "host":
        for variable in _NOT_FOR_AGENTS if "QM_AGENT_INSTANCE" in environment else _NOT_FOR_HOSTS:
            environment.pop(variable, None)
            environment.pop(f"{variable}_FILE", None)
    return processes.start(
        name,
        [sys.executable, "-P", "-m", *command],
        environment=environment,
        folder=BASE_DIR,
        log_folder=env.data_dir() / "logs",
        quit_signal=quit_signal,
    )
