"""Starting, cancelling and repeating jobs. Tasks are sent once the transaction is through."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, may, require
from quartermaster_site.errors import NotAllowed, QuartermasterError, Refused
from quartermaster_site.jobs import connection, dispatch, kinds, outcomes
from quartermaster_site.jobs.models import UNFINISHED, Job, State
from quartermaster_site.jobs.receiving import fail_unfinished, receiver_of
from quartermaster_site.jobs.sight import job_sight

log = logging.getLogger(__name__)
MARK_TASK = "quartermaster_site.jobs.host_tasks.leave_cancel_mark"


@dataclass(frozen=True, slots=True)
class Started:
    """A job; `created` is False when the same work was already queued or running."""

    job: Job
    created: bool


def start_job(
    *,
    kind: str,
    host: Any = None,
    inputs: dict[str, Any] | None = None,
    subject: tuple[str, str, str] = ("", "", ""),
    actor: Actor,
    parent: Job | None = None,
    joins: Sequence[str] = UNFINISHED,
) -> Started:
    """Queue work of a kind. `subject` is (type, id, label) of its object.

    The same work in one of the states `joins` is returned instead of being queued again. Work of a host is refused
    while the broker is away; the server's own is kept until it is back.
    """
    if kinds.BY_SLUG[kind].on_host:
        connection.require_broker()
    object_type, object_id, label = subject
    same = {"kind": kind, "host": host, "object_type": object_type, "object_id": object_id}
    with transaction.atomic():
        existing = Job.objects.filter(**same, state__in=joins).first()
        if existing:
            return Started(existing, created=False)
        job = Job(**same, object_label=label, inputs=inputs or {}, started_by=actor.user, parent=parent)
        return _queue(job)


def start_again(job: Job, *, automatic: bool = False, actor: Actor | None = None) -> Started:
    """A new job with the same inputs, linked to the old one."""
    copy = Job(
        kind=job.kind,
        host=job.host,
        object_type=job.object_type,
        object_id=job.object_id,
        object_label=job.object_label,
        inputs=receiver_of(job).inputs_again(job),
        started_by=actor.user if actor else job.started_by,
        retry_of=job,
        automatic=automatic,
    )
    return _queue(copy)


def _queue(job: Job) -> Started:
    kind = kinds.BY_SLUG[job.kind]
    job.token = secrets.token_urlsafe(24)
    if job.waits_for:
        job.state, job.state_reason = State.WAITING, job.waits_for
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        existing = Job.objects.filter(kind=job.kind, host=job.host, state__in=UNFINISHED).first()
        if existing is None:
            raise
        return Started(existing, created=False)
    if not _is_kept_back(job):
        transaction.on_commit(lambda: _send(job, kind))
    return Started(job, created=True)


def _is_kept_back(job: Job) -> bool:
    """A paused host is sent nothing, and one that is away nothing that may not be done twice.

    In its queue such work would be taken up before the word that somebody has cancelled it meanwhile.
    """
    kind = kinds.BY_SLUG[job.kind]
    paused = job.host is not None and job.host.paused
    return kind.on_host and (paused or (bool(job.waits_for) and not kind.repeatable))


def send_kept_back(host: Any, since: datetime | None) -> None:
    """Send the jobs that were made for a host while it was paused. Inside the transaction that resumes it."""
    kept = Job.objects.select_related("host").filter(host=host, state__in=[State.WAITING, State.QUEUED])
    for job in kept.filter(created_at__gte=since).order_by("pk") if since else ():
        kind = kinds.BY_SLUG[job.kind]
        if kind.on_host:
            job.state, job.state_reason = (State.WAITING if job.waits_for else State.QUEUED), job.waits_for
            job.queued_at = timezone.now()
            job.save(update_fields=["state", "state_reason", "queued_at"])
            if not _is_kept_back(job):
                transaction.on_commit(partial(_send, job, kind))


def _send(job: Job, kind: kinds.Kind) -> None:
    """A message that the broker doesn't take is sent again by the sweep."""
    arguments: dict[str, Any] = {"job": job.pk}
    if kind.on_host:
        try:
            arguments |= {"token": job.token, "inputs": receiver_of(job).message(job)}
        except QuartermasterError as error:
            fail_unfinished(job.pk, type(error).__name__, str(error))
            return
    if problem := connection.broker_problem():
        _give_reason(job, f"{problem} It is sent as soon as there is a queue.")
        return
    try:
        dispatch.send(kind.task, job.queue, **arguments)
    except connection.BROKER_ERRORS as error:
        log.warning("job %s: it could not be queued: %s", job.pk, error)
        _give_reason(job, f"The queue did not take it ({error}). It is sent again by itself.")
    else:
        _give_reason(job, "")


def _give_reason(job: Job, reason: str) -> None:
    """Why a queued job has not begun."""
    if reason or job.state_reason:
        Job.objects.filter(pk=job.pk, state=State.QUEUED).update(state_reason=reason[:300])


def send_again(job: Job) -> None:
    """Repeat the message of a job that nobody has taken up."""
    log.warning("job %s: nobody has taken it up; it is sent again", job.pk)
    _send(job, kinds.BY_SLUG[job.kind])


def send_returned(job: Job) -> None:
    """The host of a waiting job is back: send what was kept back while it was away."""
    kind = kinds.BY_SLUG[job.kind]
    if not kind.repeatable:
        _send(job, kind)


def send_next(kind: str) -> None:
    """Send the oldest job of a control kind that does one at a time; those whose turn it was not wait as rows.

    What was tried before and put back comes after all others.
    """
    queued = Job.objects.filter(kind=kind, state=State.QUEUED)
    job = queued.order_by(F("heartbeat_at").asc(nulls_first=True), "queued_at").first()
    if job is not None:
        _send(job, kinds.BY_SLUG[kind])


def may_cancel(user: Any, job: Job) -> bool:
    """Admins any job; operators and editors their own."""
    return may(user, Level.MANAGE) or (job.started_by_id == user.pk and may_retry(user, job))


def may_retry(user: Any, job: Job) -> bool:
    """Whoever may operate what the job is about."""
    return may(user, Level.OPERATE, job_sight(user).subject(job))


def cancel_job(*, job: Job, actor: Actor) -> Job:
    """Ask a job to stop. One that has not begun ends at once; a running one between two files."""
    require(actor.user, Level.OPERATE, job_sight(actor.user).subject(job))
    if not may_cancel(actor.user, job):
        raise NotAllowed("You can cancel jobs that you started. An administrator can cancel any.")
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=job.pk)
        if job.is_finished or job.state == State.CANCELLING:
            return job
        begun = job.state == State.RUNNING
        if begun and kinds.BY_SLUG[job.kind].on_host:
            connection.require_broker()
        job.state, job.state_reason = State.CANCELLING, f"asked by {actor.name}"
        if begun:
            job.save()
        else:
            job.state = State.CANCELLED
            outcomes.close(job)
            receiver_of(job).failed(job)
        record(actor, "job.cancel", subject=job, host_slug=job.host.slug if job.host else "")
        ask_to_stop(job)
    return job


def ask_to_stop(job: Job) -> None:
    """Have the host leave a mark that the job's task looks for. A host out of reach learns nothing: no harm done."""
    if kinds.BY_SLUG[job.kind].on_host:
        transaction.on_commit(lambda: _send_mark(job))


def _send_mark(job: Job) -> None:
    try:
        dispatch.send(MARK_TASK, job.queue, job=job.pk)
    except connection.BROKER_ERRORS as error:
        log.warning("job %s: the host could not be asked to stop it: %s", job.pk, error)


def retry_job(*, job: Job, actor: Actor) -> Started:
    """Start finished work again with the same inputs."""
    require(actor.user, Level.OPERATE, job_sight(actor.user).subject(job))
    if not job.is_finished:
        raise Refused("This job is not over yet: cancel it first.")
    if not kinds.BY_SLUG[job.kind].repeatable:
        raise Refused("This kind of job is not repeated: start it again from its page.")
    if kinds.BY_SLUG[job.kind].on_host:
        connection.require_broker()
    with transaction.atomic():
        started = start_again(job, actor=actor)
        record(actor, "job.retry", subject=started.job, host_slug=job.host.slug if job.host else "")
    return started


def begin(job_id: int) -> Job | None:
    """A control task takes its job up; None when it is over or was never there."""
    with transaction.atomic():
        job = Job.objects.select_for_update(of=("self",)).select_related("host").filter(pk=job_id).first()
        if job is None or job.state != State.QUEUED:
            return None
        job.state, job.state_reason, job.heartbeat_at = State.RUNNING, "", timezone.now()
        job.started_at = job.started_at or job.heartbeat_at
        job.save()
    return job
