"""Jobs as pages show them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from quartermaster_site.errors import NotFound
from quartermaster_site.jobs import kinds
from quartermaster_site.jobs.models import UNFINISHED, ControlRound, Job, State
from quartermaster_site.jobs.sight import job_sight

CONTROL_SILENT_AFTER = timedelta(minutes=3)
"""Its round is due every quarter of a minute; a worker that plans two large hosts may miss some."""


def jobs(user: Any, *, state: str = "", kind: str = "", host: str = "", mine_of: Any = None) -> QuerySet[Job]:
    """Those that a person sees, newest first, without folder listings. `state` is a state or `unfinished`; unknown
    values match nothing.
    """
    found = job_sight(user).seen(Job.objects.exclude(kind__in=kinds.UNLISTED)).select_related("host", "started_by")
    found = found.defer("log", "inputs", "final_report")
    if state == "unfinished":
        found = found.filter(state__in=UNFINISHED)
    elif state:
        found = found.filter(state=state)
    if kind:
        found = found.filter(kind=kind)
    if host:
        found = found.filter(host__slug=host)
    if mine_of is not None:
        found = found.filter(started_by=mine_of)
    return found.order_by("-id")


def get_job(pk: int, user: Any) -> Job:
    """One job with everything its page shows, for a person; NotFound."""
    found = job_sight(user).seen(Job.objects.select_related("host", "started_by", "parent", "retry_of"))
    # The inputs of a scan name every known file: a megabyte for ten thousand models.
    job = found.defer("inputs", "parent__inputs", "retry_of__inputs").filter(pk=pk).first()
    if job is None:
        raise NotFound("There is no such job. Finished jobs are kept for 30 days, failed ones for 90.")
    return job


def unfinished_count() -> int:
    return Job.objects.filter(state__in=UNFINISHED).count()


def unfinished_job(kind: str, host: Any) -> Job | None:
    """The job of this kind that a host is at."""
    return Job.objects.filter(kind=kind, host=host, state__in=UNFINISHED).first()


def can_retry(job: Job) -> bool:
    return job.is_finished and kinds.BY_SLUG[job.kind].repeatable


def progress_text(job: Job) -> str:
    """ "412 of 1,280 files · 3 problems · 00:41 · 10 a second · about 01:26 left"; "" before anything was counted."""
    parts = []
    if job.total is not None:
        parts.append(f"{job.done:,} of {job.total:,} {job.unit}".strip())
    elif job.done:
        parts.append(f"{job.done:,} {job.unit}".strip())
    if job.warnings:
        parts.append(f"{job.warnings:,} problem{'' if job.warnings == 1 else 's'}")
    if job.duration is not None:
        parts.append(clock_text(int(job.duration.total_seconds())))
    if job.silence:
        parts.append(f"nothing heard for {clock_text(int(job.silence.total_seconds()))}")
    rate, left = job.measured_rate, job.seconds_left
    if rate is not None and job.state == State.RUNNING:
        parts.append(_rate_text(rate))
    if left is not None and job.state == State.RUNNING:
        parts.append(f"about {clock_text(left)} left")
    return " · ".join(parts)


def _rate_text(rate: float) -> str:
    """`34 a second`, `6.2 a second`, `12 a minute`."""
    if rate < 1:
        return f"{rate * 60:.0f} a minute"
    return f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second"


def clock_text(seconds: int) -> str:
    """00:41, or 1:02:03 from an hour on."""
    minutes, rest = divmod(max(seconds, 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def control_silence() -> timedelta | None:
    """How long the control worker has not gone its round, where that is too long; None before its first."""
    last = ControlRound.objects.values_list("at", flat=True).first()
    silent = timezone.now() - last if last else timedelta()
    return silent if silent > CONTROL_SILENT_AFTER else None
