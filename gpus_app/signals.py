"""What happens to hosts, for apps that this one may not import."""

from __future__ import annotations

from django.dispatch import Signal

host_seen = Signal()
"""A heartbeat came: `host`, with devices and settings at hand."""

worker_replaced = Signal()
"""Another agent answers for a `host`: what the one before it was asked stays unanswered."""

target_set = Signal()
"""The path or dialect of a host's router file was changed: `host`, inside the transaction."""
