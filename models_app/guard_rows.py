"""Where the spawn guard lies on a host."""

from __future__ import annotations

from django.db import models

from gpus_app.models import Host


class SpawnGuard(models.Model):
    """What a host's last scan said of its `quartermaster-spawn`: commands in its router's file begin with it."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="spawn_guard")
    program = models.CharField(max_length=1024, blank=True)
    """The whole path of the script; blank where the host has none."""
    header_cache = models.CharField(max_length=1024, blank=True)
    """The file in which the host keeps header facts."""

    def __str__(self) -> str:
        return self.program or "no spawn guard"
