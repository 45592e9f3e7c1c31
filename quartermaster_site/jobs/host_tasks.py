"""The one base for tasks on a host's queue, and the task that cancels another. Imports no Django."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from typing import Any

from gpus_app.core.errors import QuartermasterError
from quartermaster_site.celery import app
from quartermaster_site.jobs import marks
from quartermaster_site.jobs.reporting import Reporter

log = logging.getLogger(__name__)
Work = Callable[[Reporter, dict[str, Any]], dict[str, Any]]


class Cancelled(QuartermasterError):
    """Raised between two steps once a mark was seen; `partial` is what is known so far."""

    def __init__(self, partial: dict[str, Any] | None = None) -> None:
        super().__init__("cancelled")
        self.partial = partial or {}


def host_task(name: str) -> Callable[[Work], Any]:
    """Make `work(report, inputs) -> result` a task. Every outcome, expected or not, becomes one closing report."""

    def register(work: Work) -> Any:
        @app.task(name=name)  # type: ignore[untyped-decorator]
        def task(job: int, token: str, inputs: dict[str, Any]) -> None:
            report = Reporter(job, token)
            try:
                first = marks.claim(job, token)
            except OSError as error:
                problem = f"The worker cannot write to its data folder: {error.strerror}."
                report.failed("OSError", problem, "Make room on that machine, then run it again.")
                return
            if first:
                run(work, report, inputs)
            else:
                log.warning("job %s came a second time: it was begun already", job)

        return task

    return register


def run(work: Work, report: Reporter, inputs: dict[str, Any]) -> None:
    """One run of one job on this machine."""
    try:
        if report.is_cancelled():
            report.cancelled({})
            return
        report.start(platform.node())
        report.done(work(report, inputs))
    except Cancelled as stop:
        report.cancelled(stop.partial)
    except QuartermasterError as error:
        report.failed(type(error).__name__, str(error), error.advice)
    except Exception as error:
        log.exception("job %s failed", report.job)
        report.failed(type(error).__name__, f"Unexpected: {error}", "The worker's log has the details.")
    finally:
        report.stop()
        marks.clear(report.job)


@app.task(name="quartermaster_site.jobs.host_tasks.leave_cancel_mark")  # type: ignore[untyped-decorator]
def leave_cancel_mark(job: int) -> None:
    """Ask a running task of this worker to stop."""
    marks.leave(job)
