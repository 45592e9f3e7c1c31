"""System RAM through psutil."""

from __future__ import annotations

from gpus_app.core.readings import MemoryReading


def read() -> MemoryReading | None:
    """What the system has and calls available; None where psutil can't say."""
    try:
        import psutil

        memory = psutil.virtual_memory()
    except (ImportError, OSError, RuntimeError):
        return None
    return MemoryReading(int(memory.total), int(memory.available), int(memory.used))
