"""A job as its pages show it: state as shape, colour and word, progress as a sentence, phases with their times."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from quartermaster_site.figures import UNKNOWN, duration
from quartermaster_site.jobs import kinds
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.selectors import can_retry, progress_text
from quartermaster_site.jobs.sight import JobSight

LOOKS: dict[str, tuple[str, str, str]] = {
    State.QUEUED: ("", "queued", "wait"),
    State.WAITING: ("warn", "waiting", "wait"),
    State.RUNNING: ("act", "running", "run"),
    State.CANCELLING: ("act", "cancelling", "x"),
    State.CANCELLED: ("", "cancelled", "x"),
    State.SUCCEEDED: ("ok", "done", "ok"),
    State.WARNED: ("warn", "done, with problems", "warn"),
    State.FAILED: ("bad", "failed", "bad"),
    State.LOST: ("bad", "lost", "off"),
}
"""State -> tone, word, icon."""

_RESULTS = (
    ("models", "Quants", True),
    ("files", "Files", True),
    ("new", "New", False),
    ("changed", "Changed", False),
    ("back", "Back again", False),
    ("missing", "Missing", False),
    ("offline", "Offline", False),
    ("devices", "Devices", True),
    ("eligible", "Used for planning", False),
    ("programs", "Programs", True),
    ("refused", "Of another kind", False),
    ("entries", "Entries", True),
    ("skipped", "Left out", False),
    ("revision", "Revision", False),
    ("agreement", "Agrees to", False),
    ("build", "Build", False),
    ("path", "File", False),
    ("backup", "Backup", False),
    ("reload", "Router", False),
)
"""What pages print of a result, in order: key, label, and whether a zero is worth saying."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One line of a list of jobs."""

    pk: int
    kind: str
    host: str
    about: str
    tone: str
    word: str
    shape: str
    result: str
    by: str
    created_at: datetime
    started_at: datetime | None
    took: str


@dataclass(frozen=True, slots=True)
class PhaseRow:
    name: str
    tone: str
    word: str
    shape: str
    took: str


@dataclass(frozen=True, slots=True)
class Link:
    url: str
    text: str
    pk: int = 0


@dataclass(frozen=True, slots=True)
class JobView:
    """The panel of one job. `label` is what it is about; `unseen` stands in place of what it says, else it is empty."""

    label: str
    unseen: str
    current: str
    silence: str
    error: str
    advice: str
    log: str
    tone: str
    word: str
    shape: str
    by: str
    took: str
    progress: str
    phases: tuple[PhaseRow, ...]
    results: tuple[tuple[str, str], ...]
    error_title: str
    links: tuple[Link, ...]
    relatives: tuple[Link, ...]
    can_cancel: bool
    can_retry: bool
    asks_host: bool
    """Whether that takes a message to the job's host."""

    @property
    def log_mark(self) -> str:
        """Another one for another log; its length stays once it is at its cap."""
        return f"{zlib.crc32(self.log.encode()):x}"


UNSEEN = "What this job says names models that you may not see, so it is not shown."


def job_rows(jobs: Iterable[Job], sight: JobSight) -> list[JobRow]:
    return [job_row(job, sight) for job in jobs]


def job_row(job: Job, sight: JobSight) -> JobRow:
    """One line, for a person; what may name models that are hidden from them is left out."""
    tone, word, shape = LOOKS[job.state]
    return JobRow(
        pk=job.pk,
        kind=job.get_kind_display(),
        host=job.host.name if job.host else "",
        about=job.object_label if sight.is_whole(job) else "",
        tone=tone,
        word=word,
        shape=shape,
        result=_outcome(job) if sight.is_whole(job) else "",
        by=_author(job),
        created_at=job.created_at,
        started_at=job.started_at,
        took=_seconds_text(job.duration),
    )


def job_view(job: Job, sight: JobSight, *, may_cancel: bool, may_retry: bool) -> JobView:
    """The panel; `may_*` say what the person looking at it is allowed to do."""
    tone, word, shape = LOOKS[job.state]
    whole = sight.is_whole(job)
    return JobView(
        label=job.label if whole or job.host is None else job.host.name,
        unseen="" if whole else UNSEEN,
        current=job.current if whole and not job.silence else "",
        silence=_silence_text(job),
        error=job.error if whole else "",
        advice=job.advice if whole else "",
        log=job.log if whole else "",
        tone=tone,
        word=word,
        shape=shape,
        by=_author(job),
        took=_seconds_text(job.duration),
        progress=progress_text(job) if whole else "",
        phases=_phases(job),
        results=(*_results(job.result), *_problems(job)) if whole and job.is_finished else (),
        error_title=_spaced(job.error_kind) or "Failed",
        links=_links(job),
        relatives=_relatives(job, sight),
        can_cancel=may_cancel and not job.is_finished and job.state != State.CANCELLING,
        can_retry=may_retry and can_retry(job),
        asks_host=_asks_host(job),
    )


def _asks_host(job: Job) -> bool:
    """What has not begun ends without its host, and the server's own work concerns none."""
    on_host = job.host is not None and kinds.BY_SLUG[job.kind].on_host
    return on_host and (job.is_finished or job.state == State.RUNNING)


def under_way(job: Job) -> str:
    """What somebody is told who asks for the same work once more (J-04)."""
    since = f"since {timezone.localtime(job.started_at or job.created_at):%H:%M}"
    if job.started_at is None:
        return f"This is already queued, {since}: nothing was started a second time."
    return f"This is already running, {since}: nothing was started a second time."


def _silence_text(job: Job) -> str:
    """What becomes of a job whose worker no longer reports; "" while it does."""
    if not job.silence:
        return ""
    then = "is started again by itself" if job.starts_again else "is not started again by itself"
    who = job.host or "The worker"
    return f"{who} no longer reports. If that goes on, the job counts as lost within two minutes, and {then}."


def _outcome(job: Job) -> str:
    if not job.is_finished:
        return job.state_reason or progress_text(job)
    if job.error:
        return job.error
    told = [(label.lower(), value) for label, value in _results(job.result)[:3] if value[:1].isdigit()]
    return ", ".join(_told(label, value) for label, value in told)


def _told(label: str, value: str) -> str:
    """`3 devices`, `1 device`, `1 entry`, `revision 4`."""
    if label == "revision":
        return f"{label} {value}"
    one = f"{label[:-3]}y" if label.endswith("ies") else label.removesuffix("s")
    return f"{value} {one if value == '1' else label}"


def _author(job: Job) -> str:
    return job.started_by.get_username() if job.started_by else "system"


def _seconds_text(span: timedelta | None) -> str:
    return UNKNOWN if span is None else duration(span.total_seconds())


def _results(result: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    found = []
    for key, label, zero_matters in _RESULTS:
        value = result.get(key)
        if isinstance(value, int) and (value or zero_matters):
            found.append((label, f"{value:,}"))
        elif isinstance(value, str) and value:
            found.append((label, value))
    return tuple(found)


def _problems(job: Job) -> tuple[tuple[str, str], ...]:
    """How many problems stand behind "done, with problems"."""
    return (("Problems", f"{job.warnings:,}"),) if job.warnings else ()


def _spaced(name: str) -> str:
    """`ForeignFile` as `Foreign file`."""
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f" {found.group().lower()}", name)


def _phases(job: Job) -> tuple[PhaseRow, ...]:
    starts = [(str(phase.get("name", "")), parse_datetime(str(phase.get("started", "")))) for phase in job.phases]
    rows = []
    for index, (name, start) in enumerate(starts):
        last = index == len(starts) - 1
        end = (job.finished_at or timezone.now()) if last else starts[index + 1][1]
        tone, word, shape = LOOKS[job.state] if last else ("ok", "done", "ok")
        took = duration((end - start).total_seconds()) if start and end else UNKNOWN
        rows.append(PhaseRow(name, tone, word, shape, took))
    return tuple(rows)


def _links(job: Job) -> tuple[Link, ...]:
    """Where the outcome can be seen."""
    if not job.is_finished or job.host is None:
        return ()
    slug = job.host.slug
    if job.kind in ("scan", "plan_host", "read_header"):
        models = f"{reverse('models:model-list')}?host={slug}"
        return (Link(models, "Models"), Link(reverse("models:issue-list"), "Issues"))
    if job.kind == "publish":
        return (Link(reverse("models:config-show", args=[slug]), "Config file"),)
    if job.kind == "test_launch":
        return (Link(reverse("models:model-trial", args=[job.object_id]), job.object_label),)
    if job.object_type == "speech":
        return (Link(reverse("models:voice-list", args=[slug]), "Voices"),)
    if job.kind == "verify_memory":
        return (Link(f"{reverse('models:model-show', args=[job.object_id])}#check", job.object_label),)
    return (Link(reverse("models:host-show", args=[slug]), job.host.name),)


def _relatives(job: Job, sight: JobSight) -> tuple[Link, ...]:
    before = (("started by", job.parent_id), ("again after", job.retry_of_id))
    around = Q(parent=job) | Q(retry_of=job) | Q(pk__in=[pk for _, pk in before if pk])
    seen = {other.pk: other for other in sight.seen(Job.objects.filter(around)).defer("log", "inputs").order_by("-pk")}
    related = [(word, seen.pop(pk, None)) for word, pk in before if pk]
    related += [("again as" if other.retry_of_id == job.pk else "then", other) for other in seen.values()]
    return tuple(
        Link(reverse("jobs:job-show", args=[other.pk]), f"{word} {other.get_kind_display().lower()}", other.pk)
        for word, other in related
        if other is not None
    )
