"""What happens to models and routers, for services that others need not know."""

from __future__ import annotations

from django.dispatch import Signal

router_seen = Signal()
"""A router answered and its row is stored: `router`."""
