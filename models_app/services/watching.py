"""Watching a host's folders: when to have them looked at, and when what was seen is worth a scan (web.md J-08).

Looks are no jobs: one that finds nothing leaves a time and no more.
"""

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
from gpus_app.selectors import get_host, watch_settings_of
from gpus_app.signals import host_seen, worker_replaced
from models_app.core.discovery.changes import QUIET_SECONDS
from models_app.models import FolderWatch
from models_app.services.listings import MAX_FINGERPRINT
from models_app.services.scanning import start_scan
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import Refused, Unavailable
from quartermaster_site.jobs import connection, dispatch, untrusted
from quartermaster_site.jobs.models import UNFINISHED

log = logging.getLogger(__name__)
LOOK_TASK = "models_app.host_tasks.look_at_folders"
SCAN_LABEL = "files have changed"
_BEAT = timedelta(seconds=2.5)
"""Half of what lies between two heartbeats: a look comes with the beat that is nearest to its time."""
_SHARE = 20
"""Looking may take a twentieth of the time, however slow a disk is."""
_LOST_AFTER = timedelta(minutes=10)


@receiver(host_seen)
def look_if_due(host: Host, **_: Any) -> None:
    """With each heartbeat: have the folders looked at, when it is time."""
    seconds = watch_settings_of(host).seconds
    watch = FolderWatch.objects.filter(host=host).first() if seconds else None
    if watch is not None:
        _ask(host, watch, QUIET_SECONDS if watch.growing else seconds)


def look_now(slug: str) -> None:
    """Something stirs in the folders of a host: the look need not wait for its time."""
    host = get_host(slug)
    watch = FolderWatch.objects.filter(host=host).first() if watch_settings_of(host).seconds else None
    if watch is not None:
        _ask(host, watch, QUIET_SECONDS)


def _ask(host: Host, watch: FolderWatch, after_seconds: float) -> None:
    """Send the host to look, unless a look or a scan is under way or the last look is too fresh."""
    now = timezone.now()
    if not _is_due(watch, now, after_seconds) or host.jobs.filter(kind="scan", state__in=UNFINISHED).exists():
        return
    roots = [[root.path, root.category] for root in host.roots.all()]
    if not roots:
        return
    token = secrets.token_urlsafe(24)
    FolderWatch.objects.filter(pk=watch.pk).update(asked_at=now, token=token)
    try:
        dispatch.send(LOOK_TASK, host.queue, slug=host.slug, token=token, roots=roots, seen=watch.fingerprint)
    except connection.BROKER_ERRORS as error:
        log.warning("%s: the folders were not looked at: %s", host.slug, error)
        forget_question(host)


@receiver(worker_replaced)
def forget_question(host: Host, **_: Any) -> None:
    """The worker that was asked is gone and will not answer."""
    FolderWatch.objects.filter(host=host).update(asked_at=None)


def _is_due(watch: FolderWatch, now: datetime, after_seconds: float) -> bool:
    if watch.asked_at is not None and now - watch.asked_at < _LOST_AFTER:
        return False
    pause = timedelta(seconds=max(after_seconds, _SHARE * watch.look_seconds))
    return watch.looked_at is None or now - watch.looked_at >= pause - _BEAT


def take_look(slug: str, token: str, answer: dict[str, Any]) -> None:
    """What a host saw; starts a scan when it is something new. Raises ReportRefused for what cannot be believed."""
    fingerprint = untrusted.text(answer.get("fingerprint"), "fingerprint", MAX_FINGERPRINT)
    changed = untrusted.boolean(answer.get("changed"), "changed")
    with transaction.atomic():
        watch = FolderWatch.objects.select_for_update().select_related("host").filter(host__slug=slug).first()
        if watch is None or watch.asked_at is None or not hmac.compare_digest(watch.token.encode(), token.encode()):
            raise untrusted.ReportRefused(f"nobody asked {slug} to look at its folders like that")
        watch.asked_at, watch.looked_at = None, timezone.now()
        watch.growing = untrusted.integer(answer.get("growing"), "growing", 0, 1 << 30)
        watch.look_seconds = untrusted.number(answer.get("seconds"), "seconds", 0, 1e6)
        if changed and fingerprint not in (watch.fingerprint, watch.scanned_for) and _scan(watch.host):
            watch.scanned_for = fingerprint
        watch.save(update_fields=["asked_at", "looked_at", "growing", "look_seconds", "scanned_for"])


def _scan(host: Host) -> bool:
    """Whether a scan is on its way, started here or not."""
    try:
        start_scan(host=host, actor=Actor(), label=SCAN_LABEL)
    except (Refused, Unavailable) as error:
        log.warning("%s: changed files are not scanned: %s", host.slug, error)
        return False
    return True
