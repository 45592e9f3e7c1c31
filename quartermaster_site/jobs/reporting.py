"""What a host task says while it works: plain JSON messages to the control queue. Imports no Django.

Batches are numbered, and the closing report says how many there were, so that the control side can store each once and
finish only when all have come, whatever order the broker delivers. Progress goes out at most twice a second; a beat
goes out by itself, so that one slow read does not look like a lost worker.

A broker that is away for a moment costs nothing: progress is dropped, and whatever else there is to say waits.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quartermaster_site.jobs import marks
from quartermaster_site.jobs.connection import BROKER_ERRORS
from quartermaster_site.jobs.dispatch import CONTROL_QUEUE, send

EVENT_TASK = "quartermaster_site.jobs.tasks.job_event"
PROGRESS_SECONDS = 0.5
BEAT_SECONDS = 15.0
MAX_LOG_LINES = 50
MAX_LINE = 1000
PATIENCE_SECONDS = 300.0
"""How long a part of the result waits for the broker. The job may be lost by then, and have been started again."""
_PAUSE_SECONDS = 2.0
_RENEWED = ("progress", "beat")
"""The next one says the same and more."""

log = logging.getLogger(__name__)
Sender = Callable[[dict[str, Any]], None]


def _to_control(event: dict[str, Any]) -> None:
    send(EVENT_TASK, CONTROL_QUEUE, event=event)


@dataclass
class Reporter:
    """The voice of one job on a host."""

    job: int
    token: str
    sender: Sender = _to_control
    clock: Callable[[], float] = time.monotonic
    batches: int = 0
    warnings: int = 0
    _tick: int = 0
    _sent_at: float = float("-inf")
    _phase: str = ""
    _mark: str = ""
    _lines: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self, worker: str) -> None:
        self._send("started", {"worker": worker})
        threading.Thread(target=self._beat, name=f"beat-{self.job}", daemon=True).start()

    def stop(self) -> None:
        """No more beats."""
        self._over.set()

    def is_cancelled(self) -> bool:
        """Whether somebody left a mark. Cheap enough to ask between any two files."""
        self._mark = self._mark or marks.place_of(self.job)
        return os.path.exists(self._mark)

    def log(self, line: str) -> None:
        """A line for the job's log; it travels with the next progress report."""
        if len(self._lines) < MAX_LOG_LINES:
            self._lines.append(line[:MAX_LINE])

    def progress(self, phase: str, done: int, total: int | None = None, *, unit: str = "", current: str = "") -> None:
        """Where the work stands. Dropped when the last one of the same phase is less than half a second old."""
        now = self.clock()
        if phase == self._phase and now - self._sent_at < PROGRESS_SECONDS:
            return
        self._phase, self._sent_at = phase, now
        self._tick += 1
        lines, self._lines = self._lines, []
        facts = {"phase": phase, "done": done, "total": total, "unit": unit, "current": current[-500:]}
        if not self._send("progress", {**facts, "tick": self._tick, "warnings": self.warnings, "log": lines}):
            self._lines = [*lines, *self._lines][:MAX_LOG_LINES]

    def batch(self, data: dict[str, Any]) -> None:
        """A numbered part of the result."""
        self.batches += 1
        self._send("batch", {"sequence": self.batches, **data})

    def done(self, data: dict[str, Any]) -> None:
        self._close("done", data)

    def cancelled(self, data: dict[str, Any]) -> None:
        """Stopped by request. What was sent before stays, as a partial result."""
        self._close("cancelled", data)

    def failed(self, kind: str, message: str, advice: str = "") -> None:
        self._close("failed", {"error_kind": kind, "error": message[:4000], "advice": advice[:500]})

    def _close(self, kind: str, data: dict[str, Any]) -> None:
        self.stop()
        closing = {"batches": self.batches, "warnings": self.warnings, "log": self._lines}
        self._send(kind, {**data, **closing})

    def _send(self, kind: str, data: dict[str, Any]) -> bool:
        """Whether it went out. What is not said again waits for the broker, and raises its error after a while."""
        event = {"job": self.job, "token": self.token, "kind": kind, "data": data}
        end = self.clock() + PATIENCE_SECONDS
        while True:
            try:
                self.sender(event)
                return True
            except BROKER_ERRORS as error:
                if kind in _RENEWED:
                    return False
                if self.clock() > end:
                    raise
                log.warning("job %s: the broker is away (%s); its %s waits", self.job, error, kind)
                time.sleep(_PAUSE_SECONDS)

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self._send("beat", {})
