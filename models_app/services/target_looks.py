"""Asking a host what lies at the path of its router's file: every minute, on a hint, after a failed write, by hand."""

from __future__ import annotations

import hmac
import logging
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.selectors import get_host
from gpus_app.signals import host_seen, target_set
from models_app.core.export.drift import Case
from models_app.models import Publishing, Revision, TargetWatch
from models_app.selectors.comparing import watch_of
from models_app.services.drift import (
    GRACE,
    Report,
    forget_question,
    judge,
    known_hashes,
    report_of,
    row_for,
    sync_finding,
)
from models_app.services.seen_changes import require_seen
from models_app.services.writing import take_as_written
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused, Unavailable
from quartermaster_site.jobs import connection, dispatch, untrusted
from quartermaster_site.jobs.models import UNFINISHED, Job
from quartermaster_site.jobs.receiving import Receiver
from quartermaster_site.jobs.services import Started, start_job

log = logging.getLogger(__name__)
LOOK_TASK = "models_app.target_look.look_at_file"
EVERY = timedelta(seconds=60)
_BEAT = timedelta(seconds=2.5)
"""Half of what lies between two heartbeats: a look comes with the beat that is nearest to its time."""
_LOST_AFTER = timedelta(minutes=2)


@receiver(host_seen)
def look_if_due(host: Host, **_: Any) -> None:
    """With each heartbeat: have the file looked at, when it is time."""
    if host.publish_path:
        watch = watch_of(host)
        if _is_due(watch, timezone.now()):
            _ask(host)


@receiver(target_set)
def forget_other_path(host: Host, **_: Any) -> None:
    """What was found at another path is no drift of this one."""
    sync_finding(host, watch_of(host))


def look_now(slug: str) -> None:
    """Something stirs at the file of a host: the look need not wait for its time."""
    host = get_host(slug)
    if host.publish_path:
        _ask(host)


def _is_due(watch: TargetWatch, now: datetime) -> bool:
    if watch.looked_at is None:
        return True
    is_judged = watch.missing_since is None or watch.case == Case.REMOVED
    return now - watch.looked_at >= (EVERY if is_judged else GRACE) - _BEAT


def _ask(host: Host) -> None:
    """Send the host to look, unless it looks already; a file that is being written is looked at afterwards."""
    now, watch = timezone.now(), row_for(host)
    if (watch.asked_at is not None and now - watch.asked_at < _LOST_AFTER) or _is_written_now(host):
        return
    watch.asked_at, watch.token = now, (token := secrets.token_urlsafe(24))
    watch.save()
    known = known_hashes(host, watch)
    try:
        dispatch.send(LOOK_TASK, host.queue, slug=host.slug, token=token, path=host.publish_path, known=known)
    except connection.BROKER_ERRORS as error:
        log.warning("%s: the router's file was not looked at: %s", host.slug, error)
        forget_question(host)


def _is_written_now(host: Host) -> bool:
    return Job.objects.filter(host=host, kind="publish", state__in=UNFINISHED).exists()


def take_look(slug: str, token: str, answer: dict[str, Any]) -> None:
    """What a host found at its path. Raises ReportRefused for what cannot be believed."""
    report = report_of(answer)
    with transaction.atomic():
        host = Host.objects.select_for_update().filter(slug=slug).first()
        watch = TargetWatch.objects.filter(host=host).first() if host else None
        if (
            host is None
            or watch is None
            or watch.asked_at is None
            or not hmac.compare_digest(watch.token.encode(), token.encode())
        ):
            raise untrusted.ReportRefused(f"nobody asked {slug} to look at its file like that")
        TargetWatch.objects.filter(pk=watch.pk).update(asked_at=None)
        _note(host, report)


def _note(host: Host, report: Report, by: Any = None) -> Revision | None:
    """Judge what was found; the revision with these bytes. A text of ours whose write had failed was written."""
    if report.path != host.publish_path:
        return None
    found = _revision_with(host, report.found.sha256)
    if found is not None and found.state == Revision.State.FAILED:
        take_as_written(found, path=report.path, by=by)
        host.refresh_from_db(fields=["written_sha256"])
    judge(host, report, is_older_text=found is not None)
    return found


def start_look(*, host: Host, actor: Actor) -> Started:
    """Have the host look at its file because a person asks."""
    require(actor.user, Level.OPERATE, host)
    if not host.publish_path:
        raise Refused("This host has no target yet: set the path of the router's file first.")
    return _start(host, actor)


def adopt_seen(*, host: Host, sha256: str, actor: Actor) -> Revision:
    """Take the revision whose bytes lie on the host (a backup was put back) as live, and pin the host to it.

    `sha256` is of the file that was shown to the person. Nothing is written.
    """
    require(actor.user, Level.OPERATE, host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        watch = watch_of(host)
        found = _revision_with(host, watch.sha256) if watch.sha256 == sha256 else None
        if found is None:
            raise Refused("The file there is another one by now, or none of ours: have the host look again.")
        if found.sha256 == host.written_sha256:
            return found
        require_seen(host=host, text=found, actor=actor)
        take_as_written(found, path=host.publish_path, by=actor.user)
        pin = {"pinned": found, "pinned_by": actor.name[:150], "pinned_at": timezone.now()}
        Publishing.objects.filter(host=host).update(**pin)
        record(actor, "config.adopt", subject=found, host_slug=host.slug)
    return found


def look_after(job: Job) -> None:
    """A write ended without a good report: the host says what is there as soon as it can be asked."""
    host = job.host
    if host is None or not host.publish_path:
        return
    try:
        _start(host, Actor(user=job.started_by), parent=job)
    except Unavailable:  # a person can ask later
        return


def _start(host: Host, actor: Actor, parent: Job | None = None) -> Started:
    inputs = {"path": host.publish_path, "known": known_hashes(host, watch_of(host))}
    return start_job(kind="look_at_target", host=host, inputs=inputs, actor=actor, parent=parent, joins=())


class LookReceiver(Receiver):
    """What the host found, asked by a job."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        if partial or job.host is None:
            return {}
        report = report_of(data)
        with transaction.atomic():
            host = Host.objects.select_for_update().get(pk=job.host.pk)
            if report.path != host.publish_path or _is_written_now(host) or _was_written_since(host, job):
                return {}
            revision = _note(host, report, by=job.started_by)
        found = report.found
        return {
            "path": report.path,
            "sha256": found.sha256,
            "revision": revision.number if revision else 0,
            "problem": found.problem,
        }


def _was_written_since(host: Host, job: Job) -> bool:
    """The look may have come before the write."""
    return host.written_at is not None and job.started_at is not None and host.written_at > job.started_at


def _revision_with(host: Host, sha256: str) -> Revision | None:
    if not sha256:
        return None
    found = Revision.objects.filter(host=host, sha256=sha256).select_related("host")
    return found.order_by("-number").first()
