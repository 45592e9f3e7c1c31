"""Tasks of the control queue that every job needs: taking reports, and sweeping jobs that nobody works on."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from quartermaster_site.celery import app
from quartermaster_site.jobs import receiving, sweeping
from quartermaster_site.jobs.control import TASK_AGAIN


@app.task(name="quartermaster_site.jobs.tasks.job_event", **TASK_AGAIN)  # type: ignore[untyped-decorator]
def job_event(event: Any) -> None:
    """A report of a host task, untrusted."""
    receiving.receive(event)


@app.task(name="quartermaster_site.jobs.tasks.sweep_lost_jobs")  # type: ignore[untyped-decorator]
def sweep_lost_jobs() -> None:
    """Every quarter of a minute."""
    sweeping.sweep()
    # Last, since it asks for the database's write lock, and a sweep may not need that.
    sweeping.note_round(timezone.now())
