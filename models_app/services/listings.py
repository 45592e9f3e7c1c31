"""Whether the database holds all of what a host's folders were last seen to contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpus_app.models import Host
from models_app.models import Component, Finding, FolderWatch, Row
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job

MAX_FINGERPRINT = 128
_BATCH = 500


def stored_listing(host: Host) -> str:
    """The fingerprint of the listing whose every row and finding is stored; "" where there is none."""
    watch = FolderWatch.objects.filter(host=host, is_current=True).first()
    return watch.fingerprint if watch else ""


def doubt_listing(host: Host) -> None:
    """Something of what is stored changes: until a whole scan has ended, it is that of no listing."""
    FolderWatch.objects.filter(host=host).update(is_current=False)


def take_listing(job: Job, data: dict[str, Any]) -> None:
    """A whole scan has been stored. Files that could not be read are to be tried again by the next one."""
    fingerprint = untrusted.text(data.get("fingerprint", ""), "fingerprint", MAX_FINGERPRINT)
    transient = untrusted.integer(data.get("transient", 0), "transient", 0, 1 << 30)
    FolderWatch.objects.update_or_create(
        host=job.host,
        defaults={
            "fingerprint": fingerprint,
            "is_current": bool(fingerprint) and not transient,
            "growing": 0,
            "scanned_for": "",
        },
    )


def is_as_stored(job: Job, data: dict[str, Any]) -> bool:
    """Whether the host listed exactly what is stored, and therefore sent nothing."""
    claimed = untrusted.boolean(data.get("unchanged", False), "unchanged")
    return claimed and FolderWatch.objects.filter(host=job.host, fingerprint=data.get("fingerprint") or "-").exists()


def stamp_as_seen(job: Job, is_unread: Callable[[str], bool]) -> None:
    """A scan that listed exactly what is stored has seen it all, except what could not be read before either."""
    away = (Row.State.MISSING, Row.State.OFFLINE)
    Row.objects.filter(host=job.host).exclude(state__in=away).update(last_scan=job)
    Component.objects.filter(host=job.host, away_since=None).update(last_scan=job)
    findings = Finding.objects.filter(host=job.host).values_list("pk", "path")
    seen = [pk for pk, path in findings if not is_unread(path)]
    for start in range(0, len(seen), _BATCH):
        Finding.objects.filter(pk__in=seen[start : start + _BATCH]).update(last_scan=job)
    job.warnings = Finding.objects.filter(host=job.host, last_scan=job).exclude(level="info").count()
