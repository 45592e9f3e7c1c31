"""Orders to sample: what a worker cannot know by itself, and that somebody still listens."""

from __future__ import annotations

import logging
import ntpath
import posixpath
from datetime import timedelta
from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from gpus_app.models import Host, OsFamily, Telemetry
from gpus_app.sampling import MOST_PATHS, ORDER_TASK
from gpus_app.signals import host_seen
from models_app.models import Root, Router
from quartermaster_site.jobs import connection, dispatch

log = logging.getLogger(__name__)
ORDER_SECONDS = 600.0
"""A worker samples for so long after the last order: what a queue may collect while nobody reads it is bounded."""
_RENEW_AFTER = timedelta(seconds=60)
_ASK_AGAIN_AFTER = timedelta(seconds=10)
"""Of a worker that does not sample, because it has started anew, say."""
_SILENT_AFTER = timedelta(seconds=15)


@receiver(host_seen)
def order_if_due(host: Host, **_: Any) -> None:
    """With each heartbeat."""
    now = timezone.now()
    row = Telemetry.objects.filter(host=host).defer("sample").first()
    if row is not None and row.ordered_at is not None:
        silent = row.received_at is None or now - row.received_at > _SILENT_AFTER
        if now - row.ordered_at < (_ASK_AGAIN_AFTER if silent else _RENEW_AFTER):
            return
    if row is None:
        Telemetry.objects.get_or_create(host=host, defaults={"ordered_at": now})
    else:
        Telemetry.objects.filter(pk=row.pk).update(ordered_at=now)
    try:
        dispatch.send(ORDER_TASK, host.queue, **_order(host))
    except connection.BROKER_ERRORS as error:
        log.warning("%s: no samples are ordered: %s", host.slug, error)


def _order(host: Host) -> dict[str, Any]:
    paths = list(Root.objects.filter(host=host).order_by("path").values_list("path", flat=True))
    if host.publish_path:
        folder = ntpath.dirname if host.os_family == OsFamily.WINDOWS else posixpath.dirname
        paths.append(folder(host.publish_path))
    url = Router.objects.filter(host=host).values_list("url", flat=True).first()
    return {"seconds": ORDER_SECONDS, "paths": paths[-MOST_PATHS:], "router_url": url or ""}
