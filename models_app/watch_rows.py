"""What is known of a host's folders between two scans."""

from __future__ import annotations

from django.db import models

from gpus_app.models import Host


class FolderWatch(models.Model):
    """The last look at all roots of a host, and what it is compared with. There is one after the first whole scan."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="folder_watch")
    fingerprint = models.CharField(max_length=128, blank=True)
    """Of what the last whole scan listed."""
    is_current = models.BooleanField(default=False)
    """All that it listed is stored: a scan that lists the same again need not read and send anything."""
    asked_at = models.DateTimeField(null=True, blank=True)
    """When the host was asked to look; null when it has answered."""
    token = models.CharField(max_length=64, blank=True)
    """What the answer must carry to be believed."""
    looked_at = models.DateTimeField(null=True, blank=True)
    look_seconds = models.FloatField(default=0.0)
    growing = models.PositiveIntegerField(default=0)
    """Files that were being written during the last look."""
    scanned_for = models.CharField(max_length=128, blank=True)
    """The fingerprint for which a scan was started and has not ended well: it is not started for that again."""

    def __str__(self) -> str:
        return f"folders of {self.host_id}"
