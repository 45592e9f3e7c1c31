"""Workers step back: pages and running models come first, a scan or a plan takes what processor time is left."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from celery.signals import celeryd_init

from quartermaster_site import env

_GROUP = Path("/proc/self/autogroup")


def step_back(nice: int) -> None:
    """At least this nice from now on, with everything that this process starts; nothing where that cannot be set."""
    if os.getpriority(os.PRIO_PROCESS, 0) >= nice:
        return
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    if sys.platform == "linux" and os.getsid(0) == os.getpid():
        # Linux shares the processor between sessions first (sched(7)): a process that is nice within a session
        # of its own would give way to nobody.
        with contextlib.suppress(OSError):
            _GROUP.write_text(str(nice))


def _as_worker(**_: Any) -> None:
    step_back(env.worker_nice())


def connect() -> None:
    """Every worker of Celery steps back before it takes its first message."""
    celeryd_init.connect(_as_worker, weak=False)
