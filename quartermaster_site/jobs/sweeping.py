"""Jobs whose worker went silent become `lost`, free their place, and are started again once where that is safe.

A worker may have been silent without being dead (a clock that jumped, a queue that was full): it is asked to stop, so
that two runs of the same work don't go on side by side.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils import timezone

from quartermaster_site.jobs import connection, kinds, outcomes, receiving, services
from quartermaster_site.jobs.models import FINISHED, ControlRound, Job, State

log = logging.getLogger(__name__)
LOST_AFTER = timedelta(seconds=90)
UNCLAIMED_AFTER = timedelta(minutes=10)
SEND_AGAIN_AFTER = timedelta(seconds=30)
VANISHED_AFTER = timedelta(seconds=120)
"""A job whose message the broker has lost is sent again, and is lost when that does not help."""
AWAY_AFTER = timedelta(seconds=60)
"""Without a round for so long the control worker, or its broker, was away."""
KEEP = timedelta(days=30)
KEEP_FAILED = timedelta(days=90)
_SILENT = "The worker stopped reporting: it was killed, or lost its connection."
_STOPPED = "Quartermaster was stopped while this ran."
_REPLACED = "The machine's agent was started anew while this ran."
_VANISHED = "The broker has no message that would start this, and nobody answered when it was sent again."
_UNCLAIMED = "No worker took this up, although the one that should is running."
_AGAIN = "It was started again by itself."
_BY_HAND = "Look at the host's worker, then run it again."
_ONCE = "It is not repeated by itself: see how far it came, then start it anew where you started it."


def sweep() -> None:
    """Look at all unfinished jobs, then forget old finished ones."""
    now = timezone.now()
    _leave_out_absence(now)
    silent = Job.objects.filter(state__in=[State.RUNNING, State.CANCELLING], heartbeat_at__lt=now - LOST_AFTER)
    for pk in silent.values_list("pk", flat=True):
        with _alone(pk):
            _lose(pk, _SILENT)
    for job in Job.objects.filter(state__in=[State.QUEUED, State.WAITING]).select_related("host"):
        with _alone(job.pk):
            _look_at_unstarted(job)
    _forget_old(now)


@contextmanager
def _alone(pk: int) -> Iterator[None]:
    """One job that cannot be looked at must not hold up all others for good."""
    try:
        yield
    except OperationalError:
        raise
    except Exception:
        log.exception("job %s cannot be looked at", pk)


def _leave_out_absence(now: datetime) -> None:
    """Time in which nobody could take work up or send it again does not count as waiting: it is sent again first."""
    last = ControlRound.objects.values_list("at", flat=True).first()
    if last is not None and now - last > AWAY_AFTER:
        oldest, queued = now - SEND_AGAIN_AFTER, Job.objects.filter(state=State.QUEUED)
        queued.filter(queued_at__lt=oldest).update(queued_at=oldest)
        queued.filter(started_at__isnull=False).update(started_at=now)


def note_round(now: datetime) -> None:
    """The control worker lives, or begins to: pages say so where it does not."""
    _leave_out_absence(now)
    ControlRound.objects.update_or_create(pk=1, defaults={"at": now})


def _forget_old(now: datetime) -> None:
    """Deleting nothing would still ask for the database's write lock, which somebody may hold for a while."""
    failed = [State.FAILED, State.LOST]
    finished = Job.objects.filter(state__in=FINISHED)
    for old in (
        finished.exclude(state__in=failed).filter(finished_at__lt=now - KEEP),
        finished.filter(state__in=failed, finished_at__lt=now - KEEP_FAILED),
    ):
        if old.exists():
            old.delete()


def lose_all(host: Any) -> None:
    """Close what control or this host's workers left running: called when it is known that none of them runs."""
    left = Job.objects.filter(state__in=[State.RUNNING, State.CANCELLING]).filter(Q(host=host) | Q(host=None))
    for pk in left.values_list("pk", flat=True):
        _lose(pk, _STOPPED, even_if_fresh=True)


def lose_of_predecessor(host: Any, since: datetime, silent: timedelta) -> None:
    """Close what an earlier agent of this host left: another one answers `since` then, and these say nothing more."""
    left = Job.objects.filter(host=host, state__in=[State.RUNNING, State.CANCELLING], started_at__lt=since)
    for pk in left.filter(heartbeat_at__lt=timezone.now() - silent).values_list("pk", flat=True):
        _lose(pk, _REPLACED, even_if_fresh=True)


def _look_at_unstarted(job: Job) -> None:
    """A queued job waits while its host is away; one that nobody takes up is sent again, and in the end lost.

    Sending twice does no harm: whoever takes a job up does so once. The control queue always holds something, and a
    message there says no more than the job's number: age alone decides.
    """
    reason = job.waits_for
    state = State.WAITING if reason else State.QUEUED
    if state != job.state:
        turned = {"state": state, "state_reason": reason, "queued_at": timezone.now()}
        if Job.objects.filter(pk=job.pk, state=job.state).update(**turned) and not reason:
            services.send_returned(job)
        return
    now = timezone.now()
    waited = now - job.queued_at
    if job.started_at and now - job.started_at > UNCLAIMED_AFTER:  # it was put back, over and over
        _lose(job.pk, f"{job.state_reason} That went on for too long.".strip(), even_if_fresh=True)
        return
    if reason or waited < SEND_AGAIN_AFTER:
        return
    on_host = kinds.BY_SLUG[job.kind].on_host
    vanished = on_host and connection.is_empty(job.queue)
    if waited > (VANISHED_AFTER if vanished else UNCLAIMED_AFTER) and not _is_busy(job, lately=not vanished):
        _lose(job.pk, _VANISHED if vanished else _UNCLAIMED)
    elif vanished or not on_host or job.state_reason:  # with a reason: nobody has it
        services.send_again(job)


def _is_busy(job: Job, *, lately: bool) -> bool:
    """Whether the worker that should take this runs something else, or did lately: it may come to it later."""
    on_host = kinds.BY_SLUG[job.kind].on_host
    same = [kind.slug for kind in kinds.KINDS if kind.on_host == on_host]
    others = Job.objects.filter(kind__in=same, heartbeat_at__gt=timezone.now() - LOST_AFTER)
    if not lately:
        others = others.filter(state__in=[State.RUNNING, State.CANCELLING])
    return (others.filter(host=job.host) if on_host else others).exists()


def _lose(pk: int, why: str, *, even_if_fresh: bool = False) -> None:
    with transaction.atomic():
        job = Job.objects.select_for_update().get(pk=pk)
        fresh = job.heartbeat_at is not None and timezone.now() - job.heartbeat_at < LOST_AFTER
        if job.is_finished or (fresh and not even_if_fresh):
            return
        again, repeatable = job.starts_again, kinds.BY_SLUG[job.kind].repeatable
        job.state, job.error_kind, job.error = State.LOST, "Lost", why
        job.advice = _AGAIN if again else _BY_HAND if repeatable else _ONCE
        outcomes.close(job)
        receiving.receiver_of(job).failed(job)
        services.ask_to_stop(job)
        if again:
            services.start_again(job, automatic=True)
