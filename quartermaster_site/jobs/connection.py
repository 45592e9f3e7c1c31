"""Whether the broker can take a message."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.cache import cache
from kombu.exceptions import KombuError, OperationalError
from redis import Redis
from redis.exceptions import RedisError

from quartermaster_site import env
from quartermaster_site.celery import app
from quartermaster_site.errors import Unavailable

BROKER_ERRORS = (OSError, KombuError, OperationalError, RedisError)
_REMEMBER_SECONDS = 5
_TIMEOUT_SECONDS = 1.0


def broker_problem() -> str:
    """Why no job can be queued, as a sentence; "" when all is well. Asked at most every five seconds with Redis."""
    url = env.redis_url()
    if not url:
        folder = Path(app.conf.broker_transport_options["data_folder_out"])
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"The queue folder {folder} cannot be written."
    # With Redis the cache is the same server: an answer that cannot be remembered is one more reason.
    try:
        known: str | None = cache.get("broker-problem")
        if known is None:
            known = _ask_redis(url)
            cache.set("broker-problem", known, _REMEMBER_SECONDS)
    except BROKER_ERRORS:
        return "Redis does not answer (QM_REDIS_URL)."
    return known


def _ask_redis(url: str) -> str:
    try:
        Redis.from_url(url, socket_connect_timeout=_TIMEOUT_SECONDS, socket_timeout=_TIMEOUT_SECONDS).ping()
    except BROKER_ERRORS:
        return "Redis does not answer (QM_REDIS_URL)."
    return ""


def require_broker() -> None:
    """Raise Unavailable with what still works."""
    problem = broker_problem()
    if problem:
        raise Unavailable(f"{problem} Jobs cannot be started; reading, editing and previewing still work.")
