"""What is known of a host's router: where it listens, what it was told, and what it said last."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import models
from django.utils import timezone

from gpus_app.models import Host

STALE_AFTER = timedelta(seconds=60)


class Router(models.Model):
    """The router of a host. There is no row until somebody sets an address."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="router")
    url = models.CharField(max_length=300, blank=True)
    """As the host's worker reaches it; blank: nobody asks it."""
    key = models.CharField(max_length=400, blank=True)
    """Sent to that address alone; no page shows it."""
    reload_after_write = models.BooleanField(default=True)
    version = models.PositiveIntegerField(default=0)
    """Counts changes of a person, so that of two who edit at once the second is asked."""

    asked_at = models.DateTimeField(null=True, blank=True)
    """When the host was asked to look; null when it has answered."""
    token = models.CharField(max_length=64, blank=True)
    """What the answer must carry to be believed."""
    answered_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=500, blank=True)
    """Why the last look found no router, in words; what follows is what was known before."""
    seen_at = models.DateTimeField(null=True, blank=True)
    """When the router itself last answered."""
    kind = models.CharField(max_length=16, blank=True)
    program_version = models.CharField(max_length=100, blank=True)
    slots = models.PositiveIntegerField(null=True, blank=True)
    held = models.PositiveIntegerField(default=0)
    """Models that have a process."""
    listed: models.JSONField[Any, Any] = models.JSONField(default=list)
    """[{"id", "state", "since", "aliases", "command", "exit_code", "window_tokens", "from_file"}]; `since` in ISO."""

    def __str__(self) -> str:
        return f"router of {self.host_id}"

    @property
    def is_stale(self) -> bool:
        """What is shown may be another by now."""
        return self.seen_at is None or timezone.now() - self.seen_at > STALE_AFTER
