"""One program that runs for a while: in a process group of its own, its output read all the time, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from gpus_app.core.errors import QuartermasterError
from gpus_app.core.probes.guard import killed_with_us

STOP_SECONDS = 5.0
FIRST_LINES, LAST_LINES, LINE_CHARACTERS = 40, 80, 300
_CHUNK_BYTES = 1 << 16


class NotStarted(QuartermasterError):
    """The program cannot be started at all."""


@dataclass
class Log:
    """What a process prints, line by line, without keeping the middle."""

    first: list[str] = field(default_factory=list)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    dropped: int = 0
    _rest: bytes = b""

    def follow(self, stream: IO[bytes]) -> None:
        """Read until the end, in a thread of its own: a full pipe would stop the process."""
        while chunk := os.read(stream.fileno(), _CHUNK_BYTES):
            *lines, rest = (self._rest + chunk).split(b"\n")
            self._rest = rest[:_CHUNK_BYTES]
            for line in lines:
                self._add(line)
        self._add(self._rest)

    def _add(self, data: bytes) -> None:
        line = data[: LINE_CHARACTERS * 4].decode("utf-8", "replace").rstrip()[:LINE_CHARACTERS]
        if not line:
            return
        if len(self.first) < FIRST_LINES:
            self.first.append(line)
            return
        self.dropped += len(self.last) == LAST_LINES
        self.last.append(line)

    def lines(self) -> list[str]:
        middle = [f"… {self.dropped:,} lines left out …"] if self.dropped else []
        return [*self.first, *middle, *list(self.last)]

    def said(self) -> str:
        """The line that most likely tells why, as the end of a sentence."""
        lines = self.lines()
        told = [line for line in lines if "error" in line.lower()] or lines
        return f". It said: {told[-1]}" if told else ". It printed nothing"


@contextlib.contextmanager
def running(words: Sequence[str], environment: Mapping[str, str], log: Log) -> Iterator[subprocess.Popen[bytes]]:
    """The process while the block runs; afterwards its whole group is gone, however it and this process behave.

    Raises NotStarted.
    """
    with killed_with_us() as guarded:
        process = _started(words, environment)
        guarded(process.pid)
        assert process.stdout is not None
        reader = threading.Thread(target=log.follow, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            yield process
        finally:
            send_signal(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            send_signal(process, signal.SIGKILL)
            process.wait()
            reader.join(STOP_SECONDS)


def _started(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotStarted(f"{words[0]} cannot be started: {getattr(error, 'strerror', None) or error}") from error


def send_signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To its whole group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def ending(exit_code: int) -> str:
    """How a process ended, in words."""
    return f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
