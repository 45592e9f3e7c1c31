"""What an agent reports, signed: one task carries all others. Imports no Django."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from quartermaster_site import env
from quartermaster_site.agent import identity

TASK = "gpus_app.tasks.agent_message"
_lock = threading.Lock()
_last = 0


def sealed(task: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `TASK` for a message of this worker. Raises ConfigurationError where there is no identity."""
    me = identity.current()
    if me is None:
        raise env.ConfigurationError("This machine is not enrolled any more.")
    body, instance, sequence = json.dumps(arguments), env.agent_instance(), _next()
    text = signed_text(enrolment=me.enrolment, instance=instance, sequence=sequence, task=task, body=body)
    return {
        "envelope": {
            "enrolment": me.enrolment,
            "instance": instance,
            "sequence": sequence,
            "task": task,
            "body": body,
            "signature": me.sign(text),
        }
    }


def signed_text(*, enrolment: str, instance: str, sequence: int, task: str, body: str) -> bytes:
    """What the signature is of."""
    return json.dumps([enrolment, instance, sequence, task, body]).encode()


def _next() -> int:
    """A number greater than any before it, those of an earlier process of this agent included."""
    global _last
    with _lock:
        _last = max(_last + 1, time.monotonic_ns())
        return _last
