"""What people decide about a router file that is not as we left it: keep ours, manage by hand, be reminded later."""

from __future__ import annotations

import posixpath

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from models_app.core.export.drift import Case
from models_app.core.export.key_blocks import without_key_blocks
from models_app.models import DiskVersion, ImportBatch, TargetWatch
from models_app.selectors.comparing import live_revision, watch_of
from models_app.services.drift import row_for, sync_finding
from models_app.services.importing import start_import
from models_app.services.seen_changes import require_drift_seen
from models_app.services.writing import queue_write
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused
from quartermaster_site.jobs.services import Started

_ANOTHER = "The file there is another one by now: look at it, then decide again."


def keep_ours(*, host: Host, finding: str, actor: Actor) -> Started:
    """Have the live text written again over what lies there. `finding` names what the person saw.

    The host writes only while the file is still that one; its text is kept here, and as a backup beside the file.
    """
    require(actor.user, Level.OPERATE, host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        watch = _seen(host, finding)
        live = live_revision(host)
        if live is None:
            raise Refused("The text that was written last is not kept any more: write the newest one.")
        if watch.case == Case.UNREADABLE:
            raise Refused("The file cannot be read, so what is in it cannot be kept: give the worker the right first.")
        stored = DiskVersion.objects.filter(host=host, sha256=watch.sha256).exists()
        if watch.case in (Case.EDITED, Case.REPLACED) and not stored:
            raise Refused("What lies there is not kept here yet: have the host look at it first.")
        require_drift_seen(host=host, live=live, actor=actor)
        started = queue_write(
            host=host,
            revision=live,
            expected_sha256=watch.sha256,
            checks_files=False,
            message="Kept over a changed file",
            actor=actor,
        )
        if not started.created:
            raise Refused("A file is being written to this host already: wait until that is over.")
        record(actor, "drift.keep-ours", subject=host, host_slug=host.slug, changes={"case": [watch.case, ""]})
    return started


def take_theirs(*, host: Host, finding: str, actor: Actor) -> ImportBatch:
    """Bring in what lies there as an import, to be looked at and taken over. Then a person may write over it.

    Keys are left out: what lies there is kept without secrets.
    """
    require(actor.user, Level.EDIT, host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        watch = _seen(host, finding)
        version = DiskVersion.objects.filter(host=host, sha256=watch.sha256).first()
        if version is None:
            raise Refused("What lies there is not kept here: there is nothing to bring in.")
        batch = start_import(
            host=host,
            name=posixpath.basename(host.publish_path.replace(chr(92), "/")) + ImportBatch.CHANGED_THERE,
            data=without_key_blocks(version.text).encode(),
            dialect=host.publish_dialect,
            actor=actor,
        )
        watch.taken = watch.finding
        watch.save(update_fields=["taken"])
        sync_finding(host, watch)
        record(actor, "drift.take-theirs", subject=host, host_slug=host.slug, changes={"import": [None, batch.pk]})
    return batch


def manage_by_hand(*, host: Host, actor: Actor) -> None:
    """Nothing is written to this host until somebody resumes; planning goes on."""
    require(actor.user, Level.OPERATE, host)
    if not host.publish_path:
        raise Refused("This host has no target yet: set the path of the router's file first.")
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        watch = row_for(host)
        if watch.is_by_hand:
            return
        watch.by_hand_since, watch.by_hand_by = timezone.now(), actor.name[:150]
        watch.save()
        sync_finding(host, watch)
        record(actor, "drift.by-hand", subject=host, host_slug=host.slug, changes={"by hand": [False, True]})


def resume(*, host: Host, actor: Actor) -> None:
    """The file is ours to write again, once what lies there is decided."""
    require(actor.user, Level.OPERATE, host)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        watch = watch_of(host)
        if not watch.is_by_hand:
            return
        watch.by_hand_since, watch.by_hand_by, watch.later = None, "", ""
        watch.save()
        sync_finding(host, watch)
        record(actor, "drift.resume", subject=host, host_slug=host.slug, changes={"by hand": [True, False]})


def remind_later(*, host: Host, finding: str, actor: Actor) -> None:
    """Say nothing of this drift until the file changes again. Writing stays blocked."""
    require(actor.user, Level.OPERATE, host)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        watch = _seen(host, finding)
        watch.later = watch.finding
        watch.save(update_fields=["later"])
        sync_finding(host, watch)
        record(actor, "drift.later", subject=host, host_slug=host.slug, changes={"case": [watch.case, watch.case]})


def _seen(host: Host, finding: str) -> TargetWatch:
    watch = watch_of(host)
    if not watch.has_drifted or watch.finding != finding:
        raise Refused(_ANOTHER)
    return watch
