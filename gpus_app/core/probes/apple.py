"""Apple's GPUs are not read: what Metal may use of the shared memory is told by no interface that we have."""

from __future__ import annotations

import platform

from gpus_app.core.readings import ProbeResult

VENDOR = "apple"


def read() -> ProbeResult:
    """On a Mac, a note that says what to do instead."""
    if platform.system() != "Darwin":
        return ProbeResult(VENDOR)
    return ProbeResult(VENDOR, note="GPUs of a Mac are not read: set the VRAM target by hand")
