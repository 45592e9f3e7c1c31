"""Storing the component files of a scan. One that a complete scan no longer meets goes; one out of reach is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields

from django.db.models import Q
from django.utils import timezone

from models_app.core.components.pool import PoolEntry
from models_app.models import Component, Root
from quartermaster_site.jobs.models import Job

_COLUMNS = [item.name for item in fields(PoolEntry) if item.name != "path"]
_BATCH = 200


def store_components(job: Job, found: Collection[PoolEntry]) -> None:
    """All are written and stamped with the scan that saw them, but for folders that were removed while it ran."""
    if job.host is None:
        return
    removed = {root for root, _ in job.inputs.get("roots", [])}
    removed -= set(Root.objects.filter(host=job.host).values_list("path", flat=True))
    rows = {
        entry.path: Component(
            host=job.host,
            path=entry.path,
            last_scan=job,
            **{name: getattr(entry, name) for name in _COLUMNS},
        )
        for entry in found
        if not any(_is_in(entry.path, root) for root in removed)
    }
    Component.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=["host", "path"],
        update_fields=[*_COLUMNS, "last_scan", "away_since"],
        batch_size=_BATCH,
    )


def _is_in(path: str, folder: str) -> bool:
    below = folder.rstrip("/\\")
    return path.startswith((f"{below}/", f"{below}\\"))


def settle_components(job: Job, is_unread: Callable[[str], bool]) -> None:
    """At the end of a complete scan: forget what was not met, but mark what could not be looked for."""
    unseen = Component.objects.filter(host=job.host).exclude(last_scan=job)
    away: list[int] = []
    gone: list[int] = []
    for pk, path in unseen.values_list("pk", "path"):
        (away if is_unread(path) else gone).append(pk)
    for start in range(0, len(gone), _BATCH):
        Component.objects.filter(pk__in=gone[start : start + _BATCH]).delete()
    for start in range(0, len(away), _BATCH):
        fresh = Component.objects.filter(pk__in=away[start : start + _BATCH], away_since=None)
        fresh.update(away_since=timezone.now())


def forget_components(root: Root) -> None:
    """What lies in a folder that is no longer scanned."""
    below = root.path.rstrip("/\\")
    inside = Q(path__startswith=f"{below}/") | Q(path__startswith=f"{below}\\")
    Component.objects.filter(inside, host=root.host).delete()
