"""Runs a registered executable once: bounded in time and output, its whole process group gone afterwards."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from gpus_app.core.probes.guard import killed_with_us

MAX_OUTPUT_BYTES = 1 << 20
"""Kept of each stream; what follows is read and dropped, so that the program does not block on a full pipe."""
ORDER_VARIABLE = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
"""The launch runs under it; figures read without it would number a mismatched pair the other way round."""
_CHUNK_BYTES = 1 << 16
_ASK_SECONDS = 0.5
"""How often a running program's owner is asked whether to go on."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a program printed. `exit_code` is None where it was stopped (its time was over, or somebody asked for it),
    negative for a signal.
    """

    exit_code: int | None
    stdout: str
    stderr: str


def never() -> bool:
    return False


def run_program(
    command: Sequence[str],
    timeout_seconds: float,
    environment: Mapping[str, str],
    should_stop: Callable[[], bool] = never,
) -> ProgramRun:
    """Run `command`, an argument list, with devices in bus order. Raises OSError where it cannot be started.

    It is stopped when its time is over or `should_stop` says so. The program gets a process group of its own. Whatever
    is left of the group is killed in the end, also when the program itself went away and left children behind, or when
    this process is killed meanwhile.
    """
    deadline = time.monotonic() + timeout_seconds
    with killed_with_us() as guarded, _started(command, environment) as process:
        guarded(process.pid)
        try:
            stdout, stderr, finished = _read(process, deadline, should_stop)
            exit_code = _exit_code(process, deadline) if finished else None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return ProgramRun(exit_code, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def _started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    name, value = ORDER_VARIABLE
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, name: value},
            start_new_session=True,
        )
    except ValueError as error:  # a NUL in a word
        raise OSError(str(error)) from error


def _read(
    process: subprocess.Popen[bytes], deadline: float, should_stop: Callable[[], bool]
) -> tuple[bytes, bytes, bool]:
    """Both streams up to the cap, and whether both were closed in time."""
    assert process.stdout is not None
    assert process.stderr is not None
    kept: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream, buffer in kept.items():
            selector.register(stream, selectors.EVENT_READ, (stream, buffer))
        while selector.get_map():
            left = deadline - time.monotonic()
            over = left <= 0 or should_stop()
            for key, _events in selector.select(0 if over else min(left, _ASK_SECONDS)):
                stream, buffer = key.data
                chunk = os.read(key.fd, _CHUNK_BYTES)
                if not chunk:
                    selector.unregister(stream)
                buffer += chunk[: MAX_OUTPUT_BYTES - len(buffer)]
            if over:  # what it had said by then was read above
                break
        finished = not selector.get_map()
    return bytes(kept[process.stdout]), bytes(kept[process.stderr]), finished


def _exit_code(process: subprocess.Popen[bytes], deadline: float) -> int | None:
    """None where it closed its streams but does not end in time."""
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
