"""What was read from other people's files, and what of it is kept as it was written."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from gpus_app.models import Dialect, Host
from models_app.pins import PinnedFields
from quartermaster_site.jobs.models import Job
from quartermaster_site.ordered_json import OrderedJSONField


class Fragment(PinnedFields):
    """Raw keys that are merged last into the file of a host (web.md 12.5): at its top, or in one entry.

    `fields` holds the keys; of an entry that nothing else describes, `cmd` too.
    """

    class Form(models.TextChoices):
        YAML = "yaml", "YAML"
        PRESETS = "presets", "Presets"

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="fragments")
    form = models.CharField(max_length=8, choices=Form.choices, default=Form.YAML)
    served_id = models.CharField(max_length=300, blank=True)
    """Blank: the top of the file."""

    class Meta:
        ordering = ["served_id"]
        constraints = [models.UniqueConstraint(fields=["host", "form", "served_id"], name="one_fragment_per_entry")]

    def __str__(self) -> str:
        return self.served_id or "the top of the file"


class ImportBatch(models.Model):
    """One file that somebody brought in: what it says, what was taken over, and how to take that back."""

    class State(models.TextChoices):
        READING = "reading", "Being read"
        READ = "read", "Read"
        APPLYING = "applying", "Being applied"
        APPLIED = "applied", "Applied"
        UNDONE = "undone", "Undone"
        FAILED = "failed", "Failed"

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="imports")
    source = models.CharField(max_length=20, default="config")
    """Kind of file: `config`, or another that a reader is registered for."""
    dialect = models.CharField(max_length=16, choices=Dialect.choices, blank=True)
    name = models.CharField(max_length=300)
    """The file as it was called; a path where it was read on the host."""
    size_bytes = models.PositiveIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.READING)
    problem = models.CharField(max_length=500, blank=True)
    text = models.TextField(blank=True)
    """Until it has been read; then blank, since it may hold keys."""
    report = OrderedJSONField(default=dict)
    """{"items": [...], "models": {...}, "findings": [...]} as `services.imports` writes it."""
    applied = OrderedJSONField(default=list)
    """What was written, for taking it back: one record a row, with the version that the write made."""
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="imports"
    )
    actor = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    applied_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)

    CHANGED_THERE = " as changed on the host"
    """Ends the name of a batch that holds what lay at the path of a host's file."""

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "import batches"

    def __str__(self) -> str:
        return f"import {self.pk} of {self.name}"

    @property
    def takes_theirs(self) -> bool:
        """Whether somebody chose what lies on the host over what is set here."""
        return self.name.endswith(self.CHANGED_THERE)
