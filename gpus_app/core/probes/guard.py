"""A process group that must not outlive this process, even when this process is killed outright."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator

_WAIT_AND_KILL = 'read -r _ || kill -s KILL -- "-$1"'
"""`read` fails when the other end of its input closes without a line: nobody is left who could say that all is well."""


@contextlib.contextmanager
def killed_with_us(group: int) -> Iterator[None]:
    """While the block runs, a shell of its own session kills the group as soon as this process ends, however it does.

    The system closes our end of the shell's pipe in any case; no other child inherits it. Only where there is a POSIX
    shell, else the block runs unguarded.
    """
    guard = _started(group)
    try:
        yield
    finally:
        if guard is not None:
            with contextlib.suppress(OSError):
                guard.communicate(b"\n")


def _started(group: int) -> subprocess.Popen[bytes] | None:
    if os.name != "posix":
        return None
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _WAIT_AND_KILL, "sh", str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
