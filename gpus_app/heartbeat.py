"""A host worker says every five seconds that it is alive, which also times looks at its router. Imports no Django."""

from __future__ import annotations

import logging
import platform
import threading
import time
from typing import Any

from celery.signals import worker_ready, worker_shutting_down

from quartermaster_site import env
from quartermaster_site.jobs.dispatch import CONTROL_QUEUE, send
from quartermaster_site.version import PROTOCOL, product_version

TASK = "gpus_app.tasks.host_heartbeat"
EVERY_SECONDS = 5.0

log = logging.getLogger(__name__)
_over = threading.Event()


def beat() -> None:
    """One heartbeat."""
    facts: dict[str, Any] = {"worker": platform.node(), "version": product_version(), "sent_at": time.time()}
    if env.agent_instance():
        facts["protocol"] = PROTOCOL
    send(TASK, CONTROL_QUEUE, slug=env.host_slug(), **facts)


@worker_ready.connect  # type: ignore[untyped-decorator]
def start(**_: Any) -> None:
    if env.role() in ("host", "all"):
        _over.clear()
        threading.Thread(target=_keep_beating, name="heartbeat", daemon=True).start()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def stop(**_: Any) -> None:
    _over.set()


def _keep_beating() -> None:
    while True:
        try:
            beat()
        except Exception:  # the broker may be away for a while: the next beat tries again
            log.warning("heartbeat could not be sent", exc_info=True)
        if _over.wait(EVERY_SECONDS):
            return
