"""After a write that failed or got lost: what lies on the host is asked of the host, and its hash decides."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Publishing, Revision
from models_app.services.writing import take_as_written
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused, Unavailable
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.receiving import Receiver
from quartermaster_site.jobs.services import Started, start_job


def start_look(*, host: Host, actor: Actor) -> Started:
    """Have the host look at its file because a person asks."""
    require(actor.user, Level.OPERATE)
    if not host.publish_path:
        raise Refused("This host has no target yet: set the path of the router's file first.")
    return _start(host, actor)


def adopt_seen(*, host: Host, sha256: str, actor: Actor) -> Revision:
    """Take the revision whose bytes lie on the host (a backup was put back) as live, and pin the host to it.

    `sha256` is of the file that was shown to the person. Nothing is written.
    """
    require(actor.user, Level.OPERATE)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        row = Publishing.objects.filter(host=host, seen_path=host.publish_path).first()
        found = _revision_with(host, row.seen_sha256) if row and row.seen_sha256 == sha256 else None
        if found is None:
            raise Refused("The file there is another one by now, or none of ours: have the host look again.")
        if found.sha256 == host.written_sha256:
            return found
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
    return start_job(
        kind="look_at_target", host=host, inputs={"path": host.publish_path}, actor=actor, parent=parent, joins=()
    )


class LookReceiver(Receiver):
    """What the host found. A text of ours that is there was written, whatever its job said."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        if partial or job.host is None:
            return {}
        path = untrusted.path(data.get("path", ""), "path")
        sha256 = untrusted.text(data.get("sha256", ""), "sha256", 64)
        problem = untrusted.text(data.get("problem", ""), "problem", 500)
        with transaction.atomic():
            host = Host.objects.select_for_update().get(pk=job.host.pk)
            if path != host.publish_path:
                return {}
            if not problem:
                seen = {"seen_sha256": sha256, "seen_path": path, "seen_at": timezone.now()}
                Publishing.objects.update_or_create(host=host, defaults=seen)
            found = _revision_with(host, sha256)
            if found is not None and found.state == Revision.State.FAILED:
                take_as_written(found, path=path, by=job.started_by)
        return {"path": path, "sha256": sha256, "revision": found.number if found else 0, "problem": problem}


def _revision_with(host: Host, sha256: str) -> Revision | None:
    if not sha256:
        return None
    found = Revision.objects.filter(host=host, sha256=sha256).select_related("host")
    return found.order_by("-number").first()
