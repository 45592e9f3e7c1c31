"""Control-queue tasks about hosts."""

from __future__ import annotations

import logging
from typing import Any

from gpus_app import services
from quartermaster_site.celery import app
from quartermaster_site.jobs import untrusted

log = logging.getLogger(__name__)


@app.task(name="gpus_app.tasks.host_heartbeat")  # type: ignore[untyped-decorator]
def host_heartbeat(slug: Any, worker: Any, version: Any, sent_at: Any) -> None:
    """A worker is alive; what it says is untrusted."""
    try:
        services.note_heartbeat(
            slug=untrusted.text(slug, "slug", 40),
            worker=untrusted.text(worker, "worker", 64),
            version=untrusted.text(version, "version", 32),
            sent_at=untrusted.number(sent_at, "sent_at", 0, 1e11),
        )
    except untrusted.ReportRefused as refused:
        log.warning("heartbeat refused: %s", refused)
