"""Hosts, what telemetry says about them, and how much of their memory planning may use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from gpus_app.agent_rows import Agent
from gpus_app.telemetry_rows import Telemetry, TelemetryPoint
from quartermaster_site.access.rules import Scope
from quartermaster_site.ordered_json import OrderedJSONField
from quartermaster_site.version import PROTOCOL

__all__ = ["Agent", "Backend", "Device", "Dialect", "Host", "HostSetting", "OsFamily", "Telemetry", "TelemetryPoint"]

LATE_AFTER = timedelta(seconds=30)
OFFLINE_AFTER = timedelta(seconds=90)


class OsFamily(models.TextChoices):
    LINUX = "linux", "Linux"
    WINDOWS = "windows", "Windows"
    DARWIN = "darwin", "macOS"


class Dialect(models.TextChoices):
    QUARTERMASTER = "quartermaster", "Quartermaster router"
    LLAMA_SWAP = "llama-swap", "llama-swap"
    LLAMA_SERVER = "llama-server", "llama-server (router mode)"


class Host(models.Model):
    """A machine with GPUs and model files."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=100)
    os_family = models.CharField(max_length=8, choices=OsFamily.choices, default=OsFamily.LINUX)
    paused = models.BooleanField(default=False)
    worker_version = models.CharField(max_length=32, blank=True)
    worker_id = models.CharField(max_length=64, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    clock_skew_seconds = models.FloatField(default=0.0)
    worker_protocol = models.PositiveIntegerField(default=0)
    """Of the messages of its agent (`quartermaster_site.version.PROTOCOL`); 0 for the worker beside the server."""
    paused_at = models.DateTimeField(null=True, blank=True)
    """Since when it is paused: jobs from then on are kept back, and sent when it is resumed."""

    cpu_count = models.PositiveIntegerField(default=0)
    ram_total_bytes = models.PositiveBigIntegerField(default=0)
    ram_available_bytes = models.PositiveBigIntegerField(default=0)
    probed_at = models.DateTimeField(null=True, blank=True)
    probe_note = models.CharField(max_length=500, blank=True)
    """Why no device was seen, in words."""

    publish_dialect = models.CharField(max_length=16, choices=Dialect.choices, default=Dialect.LLAMA_SWAP)
    publish_path = models.CharField(max_length=1024, blank=True)
    written_sha256 = models.CharField(max_length=64, blank=True)
    """Of the bytes last written to the target; a differing file there is drift."""
    written_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    tried: Mapping[str, HostSetting] = MappingProxyType({})
    """Sections in place of the stored ones, where a page asks what they would change."""

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name or self.slug

    def policy_scope(self) -> Scope:
        """What policies about the whole host are asked about."""
        return Scope(self.pk)

    @property
    def queue(self) -> str:
        """The Celery queue that this host's worker consumes."""
        return f"host.{self.slug}"

    @property
    def state(self) -> str:
        """`online`, `late` (> 30 s), `offline` (> 90 s), `paused`, `mismatch` (another version) or `never` seen."""
        if self.last_seen_at is None:
            return "never"
        age = timezone.now() - self.last_seen_at
        if age > OFFLINE_AFTER:
            return "offline"
        if self.worker_protocol not in (0, PROTOCOL):
            return "mismatch"
        if self.paused:
            return "paused"
        return "late" if age > LATE_AFTER else "online"

    @property
    def cut_off_heard_at(self) -> datetime | None:
        """When a machine was heard last that was cut off, while none is enrolled in its place."""
        if self.last_seen_at is not None:
            return None
        agent: Agent | None = getattr(self, "agent", None)
        return agent.heard_before_at if agent is not None else None

    @property
    def is_reachable(self) -> bool:
        """Whether its worker would take a job up now."""
        return self.state in ("online", "late")

    @property
    def why_jobs_wait(self) -> str:
        """In words: "gpu-a is offline"; "" where they do not."""
        words = {"never": "is not seen yet", "offline": "is offline", "mismatch": "runs another version"}
        if self.paused:
            return f"{self} is paused"
        return f"{self} {words[self.state]}" if self.state in words else ""


class Device(models.Model):
    """One GPU, as telemetry numbers it."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="devices")
    index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200)
    vendor = models.CharField(max_length=16, blank=True)
    uuid = models.CharField(max_length=100, blank=True)
    total_bytes = models.PositiveBigIntegerField(default=0)
    free_bytes = models.PositiveBigIntegerField(default=0)
    shared_total_bytes = models.PositiveBigIntegerField(default=0)
    shared_free_bytes = models.PositiveBigIntegerField(default=0)
    free_mark_bytes = models.PositiveBigIntegerField(default=0)
    """The most that was ever seen free: what the device has when nothing runs."""
    shared_free_mark_bytes = models.PositiveBigIntegerField(default=0)
    ours_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    """What our own launches held of it when it was read; null where nobody can tell."""
    integrated = models.BooleanField(default=False)
    eligible = models.BooleanField(default=True)
    eligible_reason = models.CharField(max_length=300, blank=True)
    read_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["host_id", "index"]
        constraints = [models.UniqueConstraint(fields=["host", "index"], name="one_device_per_index")]

    def __str__(self) -> str:
        return f"{self.index}: {self.name}"


class Backend(models.Model):
    """An executable on a host, of a kind. The list of a host is ordered: the first row of a class serves it unless one
    is starred.
    """

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="backends")
    slug = models.SlugField(max_length=40)
    """Its id in pins and files. It never changes: pins name it."""
    kind = models.CharField(max_length=16)
    """The canonical name of a kind (`models_app.core.launch.backends.KINDS`)."""
    name = models.CharField(max_length=100, blank=True)
    path = models.CharField(max_length=1024)
    starred = models.BooleanField(default=False)
    version = models.CharField(max_length=64, blank=True)
    variant = models.CharField(max_length=32, blank=True)
    """Of the build: cuda, vulkan, rocm, metal, cpu."""
    build = models.CharField(max_length=64, blank=True)
    edition = models.PositiveIntegerField(default=1)
    """Counts the changes of a person, so that of two who edit at once the second is asked."""
    created_at = models.DateTimeField(auto_now_add=True)

    probe: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """What the program said of itself when it was last asked; empty before that."""
    banner_sha256 = models.CharField(max_length=64, blank=True)
    """Of its help text: another one is another build."""
    probed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["host_id", "id"]
        constraints = [
            models.UniqueConstraint(fields=["host", "kind", "path"], name="one_backend_per_path"),
            models.UniqueConstraint(fields=["host", "slug"], name="one_backend_per_id"),
        ]

    def __str__(self) -> str:
        return self.name or self.path


class HostSetting(models.Model):
    """One section of a host's settings. Sections are stored apart, each with its own version."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="settings")
    section = models.CharField(max_length=24)
    values = OrderedJSONField(default=dict)
    """Only what a person set (camelCase keys of the generate file); absent means automatic."""
    version = models.PositiveIntegerField(default=0)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "section"], name="one_row_per_settings_section")]

    def __str__(self) -> str:
        return f"{self.host_id}/{self.section} v{self.version}"
