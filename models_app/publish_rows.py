"""How the text of a host gets onto it: who may write when, what is pinned, and what a revision was made from."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from gpus_app.models import Host

KEEP_REVISIONS, LEAST_REVISIONS, MOST_REVISIONS = 200, 10, 5000
KEEP_BACKUPS, LEAST_BACKUPS, MOST_BACKUPS = 5, 1, 100


class Publishing(models.Model):
    """A host's way to its file. There is no row until somebody sets something or writes for the first time."""

    class Policy(models.TextChoices):
        MANUAL = "manual", "By hand"
        AUTOMATIC = "auto", "By itself"
        APPROVAL = "approval", "With approval"

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="publishing")
    policy = models.CharField(max_length=8, choices=Policy.choices, default=Policy.MANUAL)
    pinned = models.ForeignKey(
        "models_app.Revision", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    """The revision that stays on the host until somebody lifts the pin: the one that a rollback made."""
    pinned_by = models.CharField(max_length=150, blank=True)
    pinned_at = models.DateTimeField(null=True, blank=True)
    keep_revisions = models.PositiveIntegerField(default=KEEP_REVISIONS)
    keep_backups = models.PositiveIntegerField(default=KEEP_BACKUPS)
    """Copies of the file as it was before a write, beside it on the host."""
    held = models.CharField(max_length=500, blank=True)
    """Why the newest text was not written by itself, in words."""

    def __str__(self) -> str:
        return f"publishing of {self.host_id}"


class RevisionDetails(models.Model):
    """What comparisons and causes need of a revision, kept apart because it is as large as the text."""

    revision = models.OneToOneField("models_app.Revision", on_delete=models.CASCADE, related_name="details")
    outline: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """`revisions.outline.Outline` as JSON."""
    inputs: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """`revisions.causes.Inputs` as JSON; empty where it is not known."""
    companions: models.JSONField[Any, Any] = models.JSONField(default=list)
    """[{"name", "text"}]: files that are written beside the text, with placeholders for keys."""

    def __str__(self) -> str:
        return f"details of {self.revision_id}"


class Submission(models.Model):
    """Fields of a text that somebody asked to have written, and of the second person who agreed."""

    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    submitted_at = models.DateTimeField(null=True, blank=True)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    restores = models.PositiveIntegerField(null=True, blank=True)
    """The number of the revision whose text a rollback brings back."""

    class Meta:
        abstract = True
