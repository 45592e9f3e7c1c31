"""Messages of our own processes carry a seal, so that the control worker believes nobody else who can write to Redis.

A host's agent may add to the control queue; what it adds is signed in a way of its own (`agent.envelope`). Everything
else there must come from a process that knows the installation's secret key. Files in the data folder need no seals:
only their owner can write them.

Celery does more with a message than run its task: it sends what the message names as callbacks, in our name. So a
machine's message may name nothing but its envelope, and a seal holds for one queue: a machine sees those of its own.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from celery.signals import before_task_publish
from kombu.utils.json import dumps

from quartermaster_site import env
from quartermaster_site.agent.envelope import TASK as AGENT_TASK
from quartermaster_site.jobs.kinds import CONTROL_QUEUE

HEADER = "seal"
_PLAIN = frozenset(
    ("task", "id", "lang", "origin", "root_id", "parent_id", "argsrepr", "kwargsrepr", "timelimit", "ignore_result")
)
"""Headers that a machine's message may carry: none of them makes Celery wait, or send something else."""


def are_used() -> bool:
    """Whether this process seals what it sends: it belongs to the server, and the broker is a Redis."""
    return bool(env.redis_url()) and not env.agent_instance()


def seal(queue: str, task: str, number: str, arguments: Any, named: Any) -> str:
    key = hashlib.sha256(b"quartermaster messages\0" + env.secret_key().encode()).digest()
    text = dumps([queue, task, number, arguments, named], sort_keys=True)  # type: ignore[no-untyped-call]
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def is_ours(message: Any) -> bool:
    """Whether a message of the control queue is one that its worker should believe, or look into."""
    headers, payload = message.headers or {}, message.payload
    if not isinstance(payload, list | tuple):
        return False  # of an older protocol: its body would name the task
    arguments, named, more = payload
    wanted = seal(CONTROL_QUEUE, str(headers.get("task")), str(headers.get("id")), arguments, named)
    if hmac.compare_digest(wanted.encode(), str(headers.get(HEADER, "")).encode("utf-8", "replace")):
        return True
    if headers.get("task") != AGENT_TASK:
        return False
    orders = [value for name, value in headers.items() if name not in _PLAIN] + list((more or {}).values())
    return not any(orders) and not arguments and isinstance(named, dict) and set(named) == {"envelope"}


def connect() -> None:
    """Seal whatever this process sends from now on."""
    before_task_publish.connect(_seal)


def _seal(sender: Any = None, body: Any = None, headers: Any = None, routing_key: Any = "", **_: Any) -> None:
    if are_used():
        headers[HEADER] = seal(str(routing_key), str(sender), str(headers["id"]), body[0], body[1])
