"""Writing a revision's text to its host, and noting what became of it."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Revision
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.services import Started, start_job


def start_write(*, revision: Revision, replace: bool = False, seen_path: str | None = None, actor: Actor) -> Started:
    """Hand the text, its hash and what the file must look like now to the host.

    `replace`: a person allows whatever lies there to be replaced (after a backup), for this write alone. `seen_path`
    is the path that was shown to the person who asked; EditConflict when the target is another one by now.
    """
    require(actor.user, Level.MANAGE if replace else Level.OPERATE)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=revision.host_id)
        if not host.publish_path:
            raise Refused("This host has no target yet: set the path of the router's file first.")
        if seen_path is not None and seen_path != host.publish_path:
            raise _moved(host)
        if Revision.objects.get(pk=revision.pk).state == Revision.State.BLOCKED:
            raise Refused("This text has findings that block it. Correct them, then plan again.")
        inputs = {
            "path": host.publish_path,
            "text": revision.text,
            "sha256": revision.sha256,
            "expected_sha256": host.written_sha256,
            "adopt": replace,
        }
        subject = ("revision", str(revision.pk), f"revision {revision.number}")
        started = start_job(kind="publish", host=host, inputs=inputs, subject=subject, actor=actor)
        if started.created:
            Revision.objects.filter(pk=revision.pk).update(state=Revision.State.WRITING, state_reason="")
            changes: dict[str, list[Any]] = {"replace": [False, True]} if replace else {}
            record(actor, "config.write", subject=revision, host_slug=host.slug, changes=changes)
    return started


def _moved(host: Host) -> EditConflict:
    message = f"The target was changed meanwhile: it is {host.publish_path} now. Look at it, then write again."
    return EditConflict(message, saved={"publish_path": host.publish_path}, version=0)


def note_written(*, job: Job, path: str, sha256: str) -> None:
    """The host wrote the text: from now on a file that differs is drift."""
    revision = _revision_of(job)
    if revision is None:
        return
    now = timezone.now()
    if sha256 != revision.sha256:
        note_failed(job=job, reason="the host reports another text than the one it was handed")
        return
    earlier = Revision.objects.filter(host=revision.host, state=Revision.State.WRITTEN).exclude(pk=revision.pk)
    earlier.update(state=Revision.State.SUPERSEDED)
    Revision.objects.filter(pk=revision.pk).update(
        state=Revision.State.WRITTEN,
        origin=Revision.Origin.PUBLISH,
        state_reason="",
        written_at=now,
        written_path=path,
        author=job.started_by,
    )
    Host.objects.filter(pk=revision.host_id).update(written_sha256=sha256, written_at=now)
    worker = Actor(name=f"worker of {revision.host.slug}")
    record(worker, "config.written", subject=revision, host_slug=revision.host.slug)


def note_failed(*, job: Job, reason: str) -> None:
    """Nothing was written, or it is not known: the text stays a candidate, or what was written last, as it was."""
    revision = _revision_of(job)
    if revision is None:
        return
    was_written = revision.sha256 == revision.host.written_sha256
    state = Revision.State.WRITTEN if was_written else Revision.State.FAILED
    Revision.objects.filter(pk=revision.pk).update(state=state, state_reason=reason[:500])
    worker = Actor(name=f"worker of {revision.host.slug}")
    failed = AuditEntry.Result.FAILED
    record(worker, "config.write", subject=revision, host_slug=revision.host.slug, result=failed, reason=reason)


def _revision_of(job: Job) -> Revision | None:
    if not job.object_id.isdigit():
        return None
    return Revision.objects.select_related("host").filter(pk=job.object_id, host=job.host).first()
