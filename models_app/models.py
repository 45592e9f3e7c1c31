"""Roots, the models found in them, what people pinned, their plans, and the texts made of these."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from gpus_app.models import Dialect, Host
from models_app.check_rows import CheckProgram as CheckProgram
from models_app.check_rows import Verification as Verification
from models_app.component_rows import Component as Component
from models_app.drift_rows import DiskVersion as DiskVersion
from models_app.drift_rows import TargetWatch as TargetWatch
from models_app.guard_rows import SpawnGuard as SpawnGuard
from models_app.import_rows import Fragment as Fragment
from models_app.import_rows import ImportBatch as ImportBatch
from models_app.key_rows import ApiKey as ApiKey
from models_app.key_rows import KeyPolicy as KeyPolicy
from models_app.pins import Change as Change
from models_app.pins import Override as Override
from models_app.pins import Variant as Variant
from models_app.publish_rows import Publishing as Publishing
from models_app.publish_rows import RevisionDetails as RevisionDetails
from models_app.publish_rows import Submission
from models_app.router_rows import Router as Router
from models_app.voice_rows import Audition as Audition
from models_app.voice_rows import SpeechServer as SpeechServer
from models_app.voice_rows import Voice as Voice
from models_app.watch_rows import FolderWatch as FolderWatch
from quartermaster_site.access.rules import Scope
from quartermaster_site.jobs.models import Job


class Root(models.Model):
    """A folder on a host that is scanned. A blank category is the main root."""

    class State(models.TextChoices):
        NEW = "new", "Not scanned yet"
        OK = "ok", "OK"
        MISSING = "missing", "Missing"
        UNREADABLE = "unreadable", "Unreadable"
        PARTIAL = "partial", "Partly read"

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="roots")
    path = models.CharField(max_length=1024)
    category = models.CharField(max_length=16, blank=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.NEW)
    state_reason = models.CharField(max_length=500, blank=True)
    state_since = models.DateTimeField(default=timezone.now)
    last_scan_at = models.DateTimeField(null=True, blank=True)
    file_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["host_id", "id"]
        constraints = [models.UniqueConstraint(fields=["host", "path"], name="one_root_per_path")]

    def __str__(self) -> str:
        return self.path


class HeaderFacts(models.Model):
    """What was read from one file's head. Good for exactly this size and modification time."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="headers")
    path = models.CharField(max_length=1024)
    size_bytes = models.PositiveBigIntegerField()
    mtime_ns = models.BigIntegerField()
    facts: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    """`readers.record.header_to_json`; null when the header could never be read, or the file is damaged.

    A file that cannot be opened keeps the facts that were read before, beside the error.
    """
    parser_version = models.PositiveIntegerField(default=0)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.CharField(max_length=500, blank=True)
    error_offset = models.BigIntegerField(null=True, blank=True)
    read_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "header facts"
        constraints = [models.UniqueConstraint(fields=["host", "path"], name="one_header_per_path")]

    def __str__(self) -> str:
        return self.path


class Row(models.Model):
    """One servable model found on disk. Pages call it a model."""

    class State(models.TextChoices):
        PRESENT = "present", "Present"
        OFFLINE = "offline", "Offline"
        """Its root could not be read in the last scan: nothing is known to have changed."""
        MISSING = "missing", "Missing"
        """Its root was read completely and the file was not there."""
        UNREADABLE = "unreadable", "Header unreadable"

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="rows")
    root = models.ForeignKey(Root, null=True, blank=True, on_delete=models.SET_NULL, related_name="rows")
    header = models.ForeignKey(HeaderFacts, null=True, blank=True, on_delete=models.SET_NULL, related_name="rows")
    path = models.CharField(max_length=1024)
    served_id = models.CharField(max_length=300)
    """The id clients use; until the first plan the id of the file name, which another file may share."""
    base_id = models.CharField(max_length=300)
    quant = models.CharField(max_length=40, blank=True)
    quant_label = models.CharField(max_length=40, blank=True)
    publisher = models.CharField(max_length=200, blank=True)
    repo = models.CharField(max_length=200, blank=True)
    file_name = models.CharField(max_length=300)
    size_bytes = models.PositiveBigIntegerField(default=0)
    mtime_ns = models.BigIntegerField(default=0)
    category = models.CharField(max_length=16, default="llm")
    model_class = models.CharField(max_length=16, blank=True)
    """Blank where the file cannot be served; `class_reason` says why."""
    class_reason = models.CharField(max_length=500, blank=True)
    architecture = models.CharField(max_length=64, blank=True)
    model_key = models.CharField(max_length=300, blank=True)
    """Rows with the same key are the same model in another quant."""
    family_key = models.CharField(max_length=300, blank=True)
    found: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """The core's `Row` as JSON: shards, missing parts, pairings (convert.py)."""
    excesses: models.JSONField[Any, Any] = models.JSONField(default=list)
    """What checks against llama.cpp have shown beyond our projections (services/check_facts.py)."""
    state = models.CharField(max_length=12, choices=State.choices, default=State.PRESENT)
    state_reason = models.CharField(max_length=500, blank=True)
    state_since = models.DateTimeField(default=timezone.now)
    first_seen_at = models.DateTimeField(default=timezone.now)
    last_scan = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["served_id"]
        indexes = [models.Index(fields=["host", "model_key"]), models.Index(fields=["state"])]
        constraints = [models.UniqueConstraint(fields=["host", "path"], name="one_row_per_path")]

    def __str__(self) -> str:
        return self.served_id

    def policy_scope(self) -> Scope:
        """What policies about this model are asked about."""
        return Scope(self.host_id, (self.served_id, self.base_id), self.path)


class Finding(models.Model):
    """Something a person should know about a file or root. Kept until a complete scan no longer finds it."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="findings")
    row = models.ForeignKey(Row, null=True, blank=True, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=48)
    level = models.CharField(max_length=8, default="warning")
    path = models.CharField(max_length=1024)
    text = models.CharField(max_length=1000)
    code = models.CharField(max_length=40, blank=True)
    offset = models.BigIntegerField(null=True, blank=True)
    since = models.DateTimeField(default=timezone.now)
    first_scan = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    last_scan = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    seen_text = models.CharField(max_length=1000, blank=True)
    """What it said when somebody acknowledged it: while it says the same, lists leave it out."""
    seen_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["path", "kind"]
        constraints = [models.UniqueConstraint(fields=["host", "kind", "path"], name="one_finding_per_kind_and_path")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}"


class StoredPlan(models.Model):
    """The planner's result for one profile, as of the last planning of the host. Lists read it; previews plan anew."""

    row = models.ForeignKey(Row, on_delete=models.CASCADE, related_name="plans")
    profile_id = models.CharField(max_length=340)
    profile = models.CharField(max_length=8, default="base")
    verdict = models.CharField(max_length=12)
    ctx_tokens = models.PositiveBigIntegerField(default=0)
    est_vram_bytes = models.PositiveBigIntegerField(default=0)
    est_ram_bytes = models.PositiveBigIntegerField(default=0)
    placement_text = models.CharField(max_length=100, blank=True)
    warning_count = models.PositiveSmallIntegerField(default=0)
    skip_reason = models.CharField(max_length=500, blank=True)
    planned_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["row_id", "id"]
        constraints = [models.UniqueConstraint(fields=["row", "profile_id"], name="one_plan_per_profile")]

    def __str__(self) -> str:
        return self.profile_id


class Revision(Submission):
    """One text of a host's config, candidate or published. Immutable but for its state."""

    class State(models.TextChoices):
        RENDERED = "rendered", "Rendered"
        VALIDATED = "validated", "Ready to write"
        BLOCKED = "blocked", "Blocked"
        AWAITING = "awaiting", "Awaiting approval"
        WRITING = "writing", "Writing"
        WRITTEN = "written", "Written"
        FAILED = "failed", "Failed"
        SUPERSEDED = "superseded", "Superseded"

    class Origin(models.TextChoices):
        CANDIDATE = "candidate", "Planned"
        PUBLISH = "publish", "Published"
        ROLLBACK = "rollback", "Rollback"
        KEYS = "keys", "Keys only"

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    origin = models.CharField(max_length=12, choices=Origin.choices, default=Origin.CANDIDATE)
    state = models.CharField(max_length=12, choices=State.choices, default=State.RENDERED)
    state_reason = models.CharField(max_length=500, blank=True)
    dialect = models.CharField(max_length=16, choices=Dialect.choices)
    text = models.TextField()
    """The whole file, header comment included."""
    body_sha256 = models.CharField(max_length=64)
    """Of what follows the header line: two revisions with the same body are the same config."""
    sha256 = models.CharField(max_length=64)
    """Of the bytes to write."""
    findings: models.JSONField[Any, Any] = models.JSONField(default=list)
    """Validation: [{"rule", "severity", "where", "line", "message"}]."""
    summary: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """{"entries": [...], "skipped": [...], "warnings": [...]} of the generator."""
    inputs: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """Digests of what went in, by name."""
    confirmed: models.JSONField[Any, Any] = models.JSONField(default=list)
    """What people confirmed before a write: [{"rule", "by"}], for V-08 with "models" (`export.confirming`)."""
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    message = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    written_at = models.DateTimeField(null=True, blank=True)
    written_path = models.CharField(max_length=1024, blank=True)

    class Meta:
        ordering = ["host_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["host", "number"], name="revision_numbers_are_unique")]

    def __str__(self) -> str:
        return f"revision {self.number} of {self.host.slug}"
