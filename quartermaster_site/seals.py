"""Messages of our own processes carry a seal, so that the control worker believes nobody else who can write to Redis.

A host's agent may add to the control queue; what it adds is signed in a way of its own (`agent.envelope`). Everything
else there must come from a process that knows the installation's secret key. Files in the data folder need no seals:
only their owner can write them.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from celery.signals import before_task_publish
from kombu.utils.json import dumps

from quartermaster_site import env
from quartermaster_site.agent.envelope import TASK as AGENT_TASK

HEADER = "seal"


def are_used() -> bool:
    """Whether this process seals what it sends: it belongs to the server, and the broker is a Redis."""
    return bool(env.redis_url()) and not env.agent_instance()


def seal(task: str, number: str, arguments: Any, named: Any) -> str:
    key = hashlib.sha256(b"quartermaster messages\0" + env.secret_key().encode()).digest()
    text = dumps([task, number, arguments, named], sort_keys=True)  # type: ignore[no-untyped-call]
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def is_ours(message: Any) -> bool:
    """Whether a message of the control queue is one that its worker should believe, or look into."""
    headers = message.headers or {}
    if headers.get("task") == AGENT_TASK:
        return True
    arguments, named, _ = message.payload
    wanted = seal(str(headers.get("task")), str(headers.get("id")), arguments, named)
    return hmac.compare_digest(wanted, str(headers.get(HEADER, "")))


def connect() -> None:
    """Seal whatever this process sends from now on."""
    before_task_publish.connect(_seal)


def _seal(sender: Any = None, body: Any = None, headers: Any = None, **_: Any) -> None:
    if are_used():
        headers[HEADER] = seal(str(sender), str(headers["id"]), body[0], body[1])
