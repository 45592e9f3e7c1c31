"""What checks against llama.cpp have measured, and the programs that measure."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from gpus_app.models import Host
from quartermaster_site.jobs.models import Job


class CheckProgram(models.Model):
    """The llama-fit-params that belongs to a llama.cpp server of a host, as the host found it."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="check_programs")
    server = models.CharField(max_length=1024)
    """The executable as commands name it."""
    path = models.CharField(max_length=1024, blank=True)
    """Blank where there is none, or nobody looked yet."""
    build = models.CharField(max_length=200, blank=True)
    problem = models.CharField(max_length=500, blank=True)
    """Why there is none, in words."""
    asked_at = models.DateTimeField(default=timezone.now)
    looked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["host_id", "server"]
        constraints = [models.UniqueConstraint(fields=["host", "server"], name="one_check_program_per_server")]

    def __str__(self) -> str:
        return self.path or self.server


class Verification(models.Model):
    """One launch of a model as llama.cpp projects it, beside our own figures of that time. Measured again, it is
    replaced.
    """

    row = models.ForeignKey("models_app.Row", on_delete=models.CASCADE, related_name="verifications")
    program = models.ForeignKey(CheckProgram, on_delete=models.CASCADE, related_name="verifications")
    build = models.CharField(max_length=200, blank=True)
    version = models.CharField(max_length=32)
    """Of this product, whose figures these are."""
    profile_id = models.CharField(max_length=340)
    launch = models.CharField(max_length=64)
    """Digest of all that decides over the memory of the launch: another one is another launch."""
    figures: models.JSONField[Any, Any] = models.JSONField(default=list)
    """[[name, [model, context, compute] measured, the same projected], ...] in bytes; the host last."""
    notes: models.JSONField[Any, Any] = models.JSONField(default=list)
    agreement_percent = models.FloatField(default=0.0)
    """The sum of all differences, whatever their sign, over all that was measured."""
    device_excess_bytes = models.PositiveBigIntegerField(default=0)
    """By how much the device that is furthest off holds more than projected."""
    ram_excess_bytes = models.PositiveBigIntegerField(default=0)
    checked_at = models.DateTimeField(default=timezone.now)
    checked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["-checked_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["row", "launch", "build"], name="one_verification_per_launch")]

    def __str__(self) -> str:
        return f"{self.profile_id} on {self.build}"
