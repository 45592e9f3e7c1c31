"""Control-queue tasks about models: an id in, a service called, the outcome on the job's row."""

from __future__ import annotations

from models_app.services.building import build_candidate
from quartermaster_site.celery import app
from quartermaster_site.jobs import control


@app.task(name="models_app.tasks.plan_host")  # type: ignore[untyped-decorator]
def plan_host(job: int) -> None:
    """Plan a host's models and keep the text."""
    control.run(job, lambda row, report: build_candidate(job=row, report=report))
