"""Celery's consumer, except that a message it cannot make sense of costs that message and not the worker.

Celery raises in its main loop at a message without an id, say, or with a body of another shape: the worker ends, puts
the message back, and ends again at its next start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer as CeleryConsumer

log = logging.getLogger(__name__)


class Consumer(CeleryConsumer):  # type: ignore[misc]
    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        handle = super().create_task_handler(*args, **options)

        def handle_or_drop(message: Any) -> Any:
            try:
                return handle(message)
            except self.connection_errors:
                raise
            except Exception as error:
                log.warning("dropped a message that is no task: %s: %s", type(error).__name__, error)
                message.reject_log_error(log, self.connection_errors)

        return handle_or_drop
