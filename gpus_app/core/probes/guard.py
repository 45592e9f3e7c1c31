"""A process group that must not outlive this process, even when this process is killed outright."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator

_WAIT_AND_KILL = 'read -r group && { read -r _ || kill -s KILL -- "-$group"; }'
"""`read` fails when the other end of its input closes without a line: nobody is left who could say that all is well."""


@contextlib.contextmanager
def killed_with_us() -> Iterator[Callable[[int], None]]:
    """Gives a function that takes a process group: from then on, and while the block runs, a shell of its own session
    kills that group as soon as this process ends, however it does.

    The shell runs before there is a group, so that next to no time lies between a program's start and its guard. The
    system closes our end of the shell's pipe in any case; no other child inherits it. Only where there is a POSIX
    shell, else the block runs unguarded.
    """
    guard, groups = _started(), []

    def watch(group: int) -> None:
        groups.append(group)
        if guard is not None and guard.stdin is not None:
            with contextlib.suppress(OSError):
                guard.stdin.write(b"%d\n" % group)
                guard.stdin.flush()

    try:
        yield watch
    finally:
        if guard is not None:
            with contextlib.suppress(OSError):
                guard.communicate(b"\n" if groups else b"")


def _started() -> subprocess.Popen[bytes] | None:
    if os.name != "posix":
        return None
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _WAIT_AND_KILL],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
