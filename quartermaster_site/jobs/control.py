"""The base of jobs that run on the control queue: take the row up, do the work, record the outcome."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, transaction
from django.utils import timezone

from gpus_app.core.errors import QuartermasterError
from quartermaster_site.jobs import kinds, outcomes, services
from quartermaster_site.jobs.models import Job, State

TASK_AGAIN: dict[str, Any] = {"autoretry_for": (OperationalError,), "max_retries": 8, "retry_backoff": 1}
"""Options of a task that waits for a database that is away, locked or full: some minutes, at growing pauses."""
log = logging.getLogger(__name__)
PROGRESS_SECONDS = 0.5


class Stopped(QuartermasterError):
    """Nobody wants the job any more: it was cancelled, was given up for lost, or is gone with its host."""


@dataclass
class ControlReporter:
    """Writes progress to the job's row, at most twice a second, and notices a cancel there."""

    job: Job
    _sent_at: float = float("-inf")

    def progress(self, phase: str, done: int, total: int | None = None, *, unit: str = "", current: str = "") -> None:
        """Raises Stopped when nobody wants the job any more."""
        now = time.monotonic()
        if phase == self.job.phase and now - self._sent_at < PROGRESS_SECONDS:
            return
        self._sent_at = now
        with transaction.atomic():
            row = Job.objects.select_for_update().filter(pk=self.job.pk).first()
            if row is None or row.is_finished or row.state == State.CANCELLING:
                raise Stopped("cancelled, lost or gone")
            outcomes.advance(row, phase=phase, done=done, total=total, unit=unit, current=current[:500])
            row.save()
        self.job.phase = phase


def run(job_id: int, work: Callable[[Job, ControlReporter], dict[str, Any]]) -> None:
    """One run of one job. `work` returns the job's result; a key `warnings` there counts problems.

    A database that goes away meanwhile raises OperationalError where the task may come again (`TASK_AGAIN`).
    """
    job = services.begin(job_id)
    if job is None:
        return
    try:
        _work(job, work)
    except OperationalError as error:
        if kinds.BY_SLUG[job.kind].repeatable:
            _put_back(job, f"The database did not take it ({error}). It is tried again by itself.")
        raise


def _work(job: Job, work: Callable[[Job, ControlReporter], dict[str, Any]]) -> None:
    job_id = job.pk
    try:
        result = work(job, ControlReporter(job))
    except Stopped:
        _close(job_id, lambda row: outcomes.finish(row, {}, cancelled=True))
    except QuartermasterError as error:
        name, text = type(error).__name__, str(error)
        _close(job_id, lambda row: outcomes.fail(row, error_kind=name, error=text))
    except Exception as error:
        if isinstance(error, OperationalError) and kinds.BY_SLUG[job.kind].repeatable:
            raise
        log.exception("job %s failed", job_id)
        name, text = type(error).__name__, f"Unexpected: {error}"
        _close(job_id, lambda row: outcomes.fail(row, error_kind=name, error=text, advice="The log has the details."))
    else:
        _close(job_id, lambda row: _finish(row, result))


def _put_back(job: Job, reason: str) -> None:
    """The job is to be taken up anew; while the database is still away it is left for the sweep.

    When it was begun first stays on the row: an error that stays must come to an end.
    """
    again = {"state": State.QUEUED, "state_reason": reason[:300], "queued_at": timezone.now()}
    Job.objects.filter(pk=job.pk, state=State.RUNNING).update(**again)


def _finish(row: Job, result: dict[str, Any]) -> None:
    row.warnings = int(result.get("warnings", 0))
    outcomes.finish(row, result)


def _close(job_id: int, end: Callable[[Job], None]) -> None:
    with transaction.atomic():
        row = Job.objects.select_for_update().filter(pk=job_id).first()
        if row is not None and not row.is_finished:
            end(row)
