"""Starting a composed command for once on this machine: does it come up, does it answer? No Django, no database.

The command is an argument list, on a free port of the loopback address, in a process group of its own that is gone
afterwards. Its output is read all the time and kept at both ends only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from gpus_app.core.errors import QuartermasterError
from gpus_app.core.probes.program import ORDER_VARIABLE
from models_app.backend_probing import is_permitted
from models_app.router.connection import Connection, RouterAway, RouterRefused
from quartermaster_site.jobs.host_tasks import Cancelled
from quartermaster_site.jobs.reporting import Reporter

PORT = "${PORT}"
MAX_WORDS = 400
MOST_READY_SECONDS = 600.0
ANSWER_SECONDS = 120.0
STOP_SECONDS = 5.0
LOOK_SECONDS = 0.5
FIRST_LINES, LAST_LINES, LINE_CHARACTERS = 40, 80, 300
_CHUNK_BYTES = 1 << 16


class TrialFailed(QuartermasterError):
    """The launch did not come up, or did not answer; the log says why."""


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


def try_launch(
    report: Reporter, inputs: Mapping[str, Any], *, environment: Mapping[str, str], permitted: Iterable[str]
) -> dict[str, Any]:
    """Start `words`, wait for `health`, send `body` to `path`, stop. Raises TrialFailed with what it printed last."""
    port = _free_port()
    words = [str(word).replace(PORT, str(port)) for word in inputs["words"]]
    if len(words) > MAX_WORDS:
        raise TrialFailed(f"the command has more than {MAX_WORDS} words")
    words[0] = _program(words[0], permitted)
    log = Log()
    started = time.monotonic()
    with _running(words, {**environment, **dict([ORDER_VARIABLE]), **inputs.get("variables", {})}, log) as process:
        connection = Connection(f"http://127.0.0.1:{port}")
        limit = min(float(inputs["seconds"]), MOST_READY_SECONDS)
        _wait_until_ready(report, process, connection, str(inputs["health"]), started + limit, log)
        ready = time.monotonic()
        report.progress("Asking", 0, current=str(inputs["path"]))
        _ask(connection, str(inputs["path"]), inputs["body"], log)
        answered = time.monotonic()
        peak = _peak_bytes(process.pid)
    return {
        "ready_seconds": round(ready - started, 2),
        "answer_seconds": round(answered - ready, 2),
        "peak_bytes": peak,
        "lines": log.lines(),
    }


def _program(name: str, permitted: Iterable[str]) -> str:
    found = shutil.which(name)
    if found is None:
        raise TrialFailed(f"{name} is not there, or is no executable file")
    if not is_permitted(found, permitted):
        raise TrialFailed(f"{found} lies outside the folders from which this host runs backends (QM_BACKEND_ROOTS)")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _running(words: Sequence[str], environment: Mapping[str, str], log: Log) -> Iterator[subprocess.Popen[bytes]]:
    """The process while the block runs; afterwards its whole group is gone, however it behaves."""
    try:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise TrialFailed(f"{words[0]} cannot be started: {getattr(error, 'strerror', None) or error}") from error
    assert process.stdout is not None
    reader = threading.Thread(target=log.follow, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        yield process
    finally:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        _signal(process, signal.SIGKILL)
        process.wait()
        reader.join(STOP_SECONDS)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _wait_until_ready(
    report: Reporter, process: subprocess.Popen[bytes], connection: Connection, health: str, end: float, log: Log
) -> None:
    began = time.monotonic()
    while True:
        if report.is_cancelled():
            raise Cancelled
        if process.poll() is not None:
            raise TrialFailed(f"it ended by itself with exit code {process.returncode}{_said(log)}")
        with contextlib.suppress(RouterAway, RouterRefused):
            connection.text("GET", health, seconds=2)
            return
        if time.monotonic() >= end:
            raise TrialFailed(f"{health} did not answer within {end - began:.0f} s{_said(log)}")
        report.progress("Loading", round(time.monotonic() - began), unit="seconds", current=(log.lines() or [""])[-1])
        time.sleep(LOOK_SECONDS)


def _ask(connection: Connection, path: str, body: Any, log: Log) -> None:
    try:
        connection.json("POST", path, body, seconds=ANSWER_SECONDS)
    except (RouterAway, RouterRefused) as error:
        raise TrialFailed(f"it came up, but {path} was not answered: {error}{_said(log)}") from error


def _said(log: Log) -> str:
    lines = log.lines()
    told = [line for line in lines if "error" in line.lower()] or lines
    return f". It said: {told[-1]}" if told else ". It printed nothing"


def _peak_bytes(pid: int) -> int:
    """The most memory that the process held at once, 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status", encoding="ascii") as stream:
        for line in stream:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0
