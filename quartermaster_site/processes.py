"""Child processes of `up`: each in a group of its own, all stopped together, none left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MAX_LOG_BYTES = 5 << 20
WARM_SECONDS = 4.0
COLD_SECONDS = 4.0
_PR_SET_PDEATHSIG = 1


@dataclass
class Child:
    """One process that we started. `quit_signal` ends it in a hurry when the polite way takes too long."""

    name: str
    log: Path
    quit_signal: signal.Signals
    spawn: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes] = field(init=False)
    optional: bool = False
    """The rest goes on without it."""
    deaths: list[float] = field(default_factory=list)
    """When it died, by the monotonic clock."""

    def __post_init__(self) -> None:
        self.process = self.spawn()

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def restart(self) -> None:
        """Another process in the place of one that died, and of what that one left behind."""
        self.kill_group()
        self.process = self.spawn()

    def kill_group(self) -> None:
        """The group may outlive its leader: what is left of it goes too."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def last_lines(self, count: int = 5) -> str:
        """The end of its log, for the message about its death."""
        try:
            text = self.log.read_bytes()[-8192:].decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-count:])


def start(
    name: str,
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log_folder: Path,
    quit_signal: signal.Signals = signal.SIGTERM,
    optional: bool = False,
) -> Child:
    """Start a process in a session of its own; its output goes to a log file."""
    log_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = log_folder / f"{name}.log"

    def spawn() -> subprocess.Popen[bytes]:
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
            os.replace(log, log.with_suffix(".log.1"))
        with log.open("ab") as stream:
            return subprocess.Popen(
                list(command),
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent() if sys.platform == "linux" else None,
            )

    return Child(name, log, quit_signal, spawn, optional)


def _die_with_parent() -> Callable[[], None] | None:
    """On Linux a child gets SIGTERM when we are killed, so that even SIGKILL leaves no orphan."""
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None

    def set_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return set_signal


def stop_all(children: Sequence[Child]) -> None:
    """Ask politely, then firmly, then kill whole groups. Nothing is left when this returns."""
    for child in children:
        _signal(child, signal.SIGTERM)
    if not _wait(children, WARM_SECONDS):
        for child in children:
            _signal(child, child.quit_signal)
        _wait(children, COLD_SECONDS)
    for child in children:
        child.kill_group()


def _signal(child: Child, number: signal.Signals) -> None:
    if child.is_running:
        child.process.send_signal(number)


def _wait(children: Sequence[Child], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(child.is_running for child in children):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
