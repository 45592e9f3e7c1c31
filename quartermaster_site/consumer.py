"""Celery's consumer, except that a message it cannot make sense of costs that message and not the worker.

Celery raises in its main loop at a message without an id, say, or with a body of another shape: the worker ends, puts
the message back, and ends again at its next start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer as CeleryConsumer

from quartermaster_site import env, seals

log = logging.getLogger(__name__)


class Consumer(CeleryConsumer):  # type: ignore[misc]
    _restored = False

    def _restore_once(self) -> None:
        """A queue's only worker takes back what its predecessor held when it was killed; not at later connections."""
        if self._restored or env.role() not in ("host", "control") or not env.redis_url():
            return
        self._restored = True
        from quartermaster_site.redis_transport import restore  # imports redis

        if count := restore(self.connection.default_channel):
            log.warning("%d messages come back that an earlier worker had taken", count)

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        handle = super().create_task_handler(*args, **options)
        doubts = seals.are_used() and env.role() != "host"
        self._restore_once()

        def handle_or_drop(message: Any) -> Any:
            try:
                if doubts and not seals.is_ours(message):
                    raise ValueError(f"{message.headers.get('task')} comes from none of our processes")
                return handle(message)
            except self.connection_errors:
                raise
            except Exception as error:
                log.warning("dropped a message that is no task: %s: %s", type(error).__name__, error)
                message.reject_log_error(log, self.connection_errors)

        return handle_or_drop
