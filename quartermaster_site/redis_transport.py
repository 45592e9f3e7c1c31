"""kombu's Redis transport without what it keeps about bindings: every queue has an exchange of its own name.

Whoever may write there could have the messages of others copied to a list of their own. A host's worker may write to
the control queue and not look into it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu.transport import redis, virtual
from redis.exceptions import ExecAbortError, OutOfMemoryError, RedisError

log = logging.getLogger(__name__)


class QoS(redis.QoS):
    def append(self, message: Any, delivery_tag: str) -> None:
        """Note what was taken and is not confirmed. A full Redis has handed it out and keeps no note: kombu would end
        the worker, and the message would be gone."""
        try:
            super().append(message, delivery_tag)  # type: ignore[no-untyped-call]
        except (OutOfMemoryError, ExecAbortError):
            log.warning("the broker is full: a message is handled without a note of it there")
            virtual.QoS.append(self, message, delivery_tag)  # type: ignore[no-untyped-call]

    def ack(self, delivery_tag: str) -> None:
        with self._place_given_free(delivery_tag):
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        with self._place_given_free(delivery_tag):
            super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]

    @contextmanager
    def _place_given_free(self, delivery_tag: str) -> Iterator[None]:
        """Also where the broker is away: kombu would keep the place taken, and with all places taken it asks for no
        message, never finds out that its connection is gone, and stands still for good."""
        try:
            yield
        except (RedisError, OSError):
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]
            raise


class Channel(redis.Channel):
    QoS = QoS

    def get_table(self, exchange: str) -> list[Any]:
        return [(exchange, "", exchange)]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Nothing to note down."""

    def _size(self, queue: str) -> int:
        """How full a queue is when it is declared: nobody asks, and not everybody may look."""
        return 0

    def _brpop_read(self, **options: Any) -> Any:
        """What cannot be read costs itself alone: kombu would end the worker."""
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            log.warning("dropped what is no message: %s: %s", type(error).__name__, error)
            return None


class Transport(redis.Transport):
    Channel = Channel

    def _deliver(self, message: Any, queue: str) -> None:
        if is_message(message):
            super()._deliver(message, queue)  # type: ignore[no-untyped-call]
        else:
            log.warning("dropped what is no message from %s", queue)


def is_message(value: Any) -> bool:
    """Whether this has the shape that kombu takes for granted."""
    try:
        properties, delivery = value["properties"], value["properties"]["delivery_info"]
        texts = (properties["delivery_tag"], delivery["exchange"], delivery["routing_key"], value["body"])
        return all(isinstance(text, str) for text in texts) and isinstance(value["headers"], dict)
    except (TypeError, KeyError):
        return False


def restore(channel: Any) -> int:
    """Put back what an earlier worker of this queue had taken and never confirmed, because it was killed.

    For the start of the only worker of a queue: it would get these messages a day later. Returns their number.
    """
    with channel.conn_or_acquire() as client:
        tags = client.zrange(channel.unacked_index_key, 0, -1)
        for tag in tags:
            channel.qos.restore_by_tag(tag, client)
    return len(tags)
