"""Whether the broker can take a message."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from kombu.exceptions import KombuError, OperationalError

from quartermaster_site import broker, env, redis_broker
from quartermaster_site.celery import app
from quartermaster_site.errors import Unavailable

BROKER_ERRORS = (OSError, KombuError, OperationalError)
_REMEMBER_SECONDS = 5
_TIMEOUT_SECONDS = 1.0
_PROBE_KEY = "qm.space"
_PROBE_LIFE_SECONDS = 60


def broker_problem() -> str:
    """Why no job can be queued, as a sentence; "" when all is well. Asked at most every five seconds with Redis."""
    url = env.redis_url()
    if not url:
        folder = Path(app.conf.broker_transport_options["data_folder_out"])
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"The queue folder {folder} cannot be written."
    return _redis_problem(url, int(time.monotonic()) // _REMEMBER_SECONDS)


@lru_cache(maxsize=1)
def _redis_problem(url: str, moment: int) -> str:
    """`moment` makes the answer of this process good for five seconds."""
    from redis import RedisError
    from redis.exceptions import OutOfMemoryError

    try:
        with _redis(url) as connection:
            connection.set(_PROBE_KEY, "", ex=_PROBE_LIFE_SECONDS)
    except OutOfMemoryError:
        return "Redis is full (its maxmemory): it takes no message until there is room."
    except (RedisError, OSError):
        return "Redis does not answer (QM_REDIS_URL)."
    return ""


def _redis(url: str) -> Any:
    from redis import Redis  # slow to import, and not needed without QM_REDIS_URL

    return Redis.from_url(url, socket_connect_timeout=_TIMEOUT_SECONDS, socket_timeout=_TIMEOUT_SECONDS)


def is_empty(queue: str) -> bool:
    """Whether the broker surely holds no message of a queue, neither waiting nor taken and unconfirmed.

    A Redis that was restarted may have lost them all; what a worker has read from the data folder is gone with it.
    """
    url = env.redis_url()
    if not url:
        return broker.is_empty(Path(app.conf.broker_transport_options["data_folder_out"]), queue)
    from redis import RedisError

    try:
        with _redis(url) as connection:
            return not connection.exists(queue, redis_broker.unconfirmed_keys(queue)["unacked_key"])
    except (RedisError, OSError):
        return False


def require_broker() -> None:
    """Raise Unavailable with what still works."""
    problem = broker_problem()
    if problem:
        raise Unavailable(f"{problem} Jobs cannot be started; reading, editing and previewing still work.")
