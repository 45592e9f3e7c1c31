"""What lies at the path of a host's router file, as its worker last reported, and what somebody else put there."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from gpus_app.models import Host
from models_app.core.export.drift import Case

KEEP_VERSIONS = 20
"""Texts of others that are kept for each host."""
WORDS = {
    Case.EDITED: "was edited by hand",
    Case.REPLACED: "was replaced by something that Quartermaster did not write",
    Case.REMOVED: "was removed",
    Case.UNREADABLE: "cannot be read",
    Case.RESTORED: "is an older text of Quartermaster, put back by somebody",
}
"""Case -> what became of the file."""


class DiskVersion(models.Model):
    """A text that somebody else put at the path: once per distinct hash, without secrets."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="disk_versions")
    sha256 = models.CharField(max_length=64)
    """Of the bytes as they lay there."""
    text = models.TextField()
    """Redacted; keys of ours are placeholders."""
    size_bytes = models.PositiveBigIntegerField(default=0)
    found_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-found_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["host", "sha256"], name="one_disk_version_per_hash")]

    def __str__(self) -> str:
        return f"{self.sha256[:12]} on {self.host_id}"


class TargetWatch(models.Model):
    """The last look at the router's file of a host. There is no row before the first one."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="target_watch")
    asked_at = models.DateTimeField(null=True, blank=True)
    """When the host was asked to look; null when it has answered."""
    token = models.CharField(max_length=64, blank=True)
    """What the answer must carry to be believed."""

    path = models.CharField(max_length=1024, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    """Of the file as the host last found it; blank with `looked_at` set: there was none, or it cannot be read."""
    size_bytes = models.PositiveBigIntegerField(default=0)
    modified_at = models.DateTimeField(null=True, blank=True)
    has_header = models.BooleanField(default=False)
    problem = models.CharField(max_length=500, blank=True)
    """Why it cannot be read, in the words of the host's system."""
    missing_since = models.DateTimeField(null=True, blank=True)
    """The file was not there, for too short a time to say that it was removed."""

    case = models.CharField(max_length=12, blank=True)
    """A `drift.Case`; blank: the file is as we left it, or nothing of ours was ever written there."""
    since = models.DateTimeField(null=True, blank=True)
    later = models.CharField(max_length=80, blank=True)
    """What somebody wants to hear of only when the file changes again (`finding`)."""
    taken = models.CharField(max_length=80, blank=True)
    """The drift whose text somebody has brought in as an import: it may be written over, by a person."""
    by_hand_since = models.DateTimeField(null=True, blank=True)
    """Since when the file belongs to people: nothing is written until somebody resumes."""
    by_hand_by = models.CharField(max_length=150, blank=True)

    def __str__(self) -> str:
        return f"router file of {self.host_id}"

    @property
    def finding(self) -> str:
        """Which drift this is: another case or another text is another one."""
        return f"{self.case}:{self.sha256}" if self.case else ""

    @property
    def is_by_hand(self) -> bool:
        return self.by_hand_since is not None

    @property
    def has_drifted(self) -> bool:
        """Nothing is written by itself while this holds."""
        return self.case != Case.NONE

    @property
    def is_taken(self) -> bool:
        return self.has_drifted and self.taken == self.finding

    @property
    def blocks(self) -> bool:
        """Nobody writes while this holds."""
        return self.has_drifted and not self.is_taken

    @property
    def calls(self) -> bool:
        """Somebody should look at it now."""
        return self.blocks and not self.is_by_hand and self.later != self.finding
