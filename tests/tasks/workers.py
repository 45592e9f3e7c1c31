"""Starting real worker processes for tests, and stopping them for sure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def environment(data_dir: Path) -> dict[str, str]:
    """An environment with nothing of ours but the data folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("QM_", "DJANGO_", "PYTEST"))}
    return {**clean, "QM_DATA_DIR": str(data_dir), "PYTHONPATH": str(ROOT), "QM_WORKER_NICE": "0"}


@contextmanager
def worker(role: str, queue: str, data_dir: Path, log: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker with four threads, in an environment with nothing of ours but what is said here."""
    env = {**environment(data_dir), "QM_ROLE": role, **more}
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO"]
    command = ["celery", "-A", "quartermaster_site.celery", "worker", "-P", "threads", "-c", "4", "-Q", queue, *quiet]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env=env,
            cwd=data_dir,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: b"ready." in log.read_bytes() or process.poll() is not None, 30, log)
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(condition: Callable[[], bool], seconds: float, log: Path | None = None) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            tail = log.read_text()[-3000:] if log else ""
            raise AssertionError(f"nothing happened within {seconds} s\n{tail}")
        time.sleep(0.05)
