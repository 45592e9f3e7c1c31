"""What a host's worker measured last, and a bounded past of it for drawings."""

from __future__ import annotations

from typing import Any

from django.db import models

SLOT_SECONDS = 10
SLOTS = 360
"""An hour."""


class Telemetry(models.Model):
    """The last sample of a host. There is no row until samples were ordered from it."""

    host = models.OneToOneField("gpus_app.Host", on_delete=models.CASCADE, related_name="telemetry")
    ordered_at = models.DateTimeField(null=True, blank=True)
    """When its worker was last told to go on sampling."""
    run = models.CharField(max_length=32, blank=True)
    """Of the worker that took the sample: with each start another one."""
    number = models.PositiveBigIntegerField(default=0)
    """Of the sample in its run, so that one that comes twice or late changes nothing."""
    received_at = models.DateTimeField(null=True, blank=True)
    """By our clock: the host's may be wrong."""
    sample: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """As `telemetry.checked` makes it."""

    def __str__(self) -> str:
        return f"telemetry of {self.host_id}"


class TelemetryPoint(models.Model):
    """One moment of the past hour. Slots are used again and again, so that a host never has more than `SLOTS` rows."""

    host = models.ForeignKey("gpus_app.Host", on_delete=models.CASCADE, related_name="telemetry_points")
    slot = models.PositiveIntegerField()
    at = models.DateTimeField()
    values: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """{"devices": {index: [used bytes, total bytes, busy %, Celsius]}, "ram": [used bytes, total bytes]}."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "slot"], name="one_point_per_slot")]

    def __str__(self) -> str:
        return f"{self.host_id} at {self.at}"
