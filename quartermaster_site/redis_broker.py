"""Redis or Valkey as the broker: its options, and every key that a queue needs, so that access lists can name them."""

from __future__ import annotations

from typing import Any

from kombu.transport import TRANSPORT_ALIASES

SCHEMES = ("redis", "rediss")
_VISIBILITY_SECONDS = 24 * 3600
"""Redis gives a message that nobody confirmed to another worker after this time; a scan may take hours."""
_CONNECT_SECONDS = 5.0
_SILENT_SECONDS = 20.0
"""A connection that says nothing for so long is given up: longer than any wait for a message."""


def register() -> None:
    """Make `redis://` and `rediss://` mean this transport."""
    for scheme in SCHEMES:
        TRANSPORT_ALIASES[scheme] = "quartermaster_site.redis_transport:Transport"


def unconfirmed_keys(queue: str) -> dict[str, str]:
    """kombu's options for the messages that a worker of this queue has taken and not confirmed."""
    return {
        "unacked_key": f"unacked.{queue}",
        "unacked_index_key": f"unacked-index.{queue}",
        "unacked_mutex_key": f"unacked-mutex.{queue}",
    }


def keys_of(queue: str) -> tuple[str, ...]:
    """Every key that a worker of this queue reads and writes."""
    return (queue, *unconfirmed_keys(queue).values())


def options(queue: str) -> dict[str, Any]:
    """kombu's transport options for a process that takes messages from `queue`."""
    return {
        **unconfirmed_keys(queue),
        "visibility_timeout": _VISIBILITY_SECONDS,
        "priority_steps": [0],
        "socket_connect_timeout": _CONNECT_SECONDS,
        "socket_timeout": _SILENT_SECONDS,
        "socket_keepalive": True,
    }
