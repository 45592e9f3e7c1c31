"""Opening a model file without being hung, fooled or crashed by what lies at its path."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO

from models_app.core.errors import HeaderError, SourceUnreadable

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def open_regular(path: str) -> Iterator[tuple[FileIO, int]]:
    """The file and its size, taken from the open file; closes it. Every failure is a HeaderError that names the path.

    Looking before opening keeps device files from being touched; opening without blocking covers a FIFO that takes the
    file's place in between. Plain reads, never a memory map: a mapped file that shrinks kills the process.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SourceUnreadable("unreadable", "not a regular file", path=path)
        with FileIO(os.open(path, _FLAGS), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SourceUnreadable("unreadable", "not a regular file", path=path)
            yield stream, status.st_size
    except HeaderError as error:
        error.path = error.path or path
        raise
    except OSError as error:
        raise SourceUnreadable("unreadable", error.strerror or str(error), path=path) from error
    except ValueError as error:  # a path with a null byte, or one that the file system's encoding cannot spell
        raise SourceUnreadable("unreadable", f"not a usable path: {error}", path=path) from error


def read_fully(stream: FileIO, size_bytes: int) -> bytes:
    """Up to `size_bytes` from the current position; fewer only where the file ends."""
    parts: list[bytes] = []
    left = size_bytes
    while left > 0:
        part = stream.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
