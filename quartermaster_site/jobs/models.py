"""Job rows: the one truth about background work (state, progress, log, error). The result backend holds nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from quartermaster_site.jobs import kinds


class State(models.TextChoices):
    QUEUED = "queued", "Queued"
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    CANCELLING = "cancelling", "Cancelling"
    CANCELLED = "cancelled", "Cancelled"
    SUCCEEDED = "succeeded", "Succeeded"
    WARNED = "succeeded_with_warnings", "Succeeded with warnings"
    FAILED = "failed", "Failed"
    LOST = "lost", "Lost"


UNFINISHED = (State.QUEUED, State.WAITING, State.RUNNING, State.CANCELLING)
SILENT_AFTER = timedelta(seconds=30)
"""Of a running job: the pages say so. Later the sweep calls it lost."""
ESTIMATE_HOLDS_FOR = timedelta(seconds=20)
"""A running job says every 15 seconds that it lives: when that did not come, nobody knows how long it still takes."""
FINISHED = tuple(state for state in State if state not in UNFINISHED)


class Job(models.Model):
    """One piece of work in the background."""

    kind = models.CharField(max_length=32, choices=kinds.choices)
    host = models.ForeignKey("gpus_app.Host", null=True, blank=True, on_delete=models.CASCADE, related_name="jobs")
    state = models.CharField(max_length=24, choices=State.choices, default=State.QUEUED, db_index=True)
    state_reason = models.CharField(max_length=300, blank=True)
    """Why it waits, in words: "host local is offline"."""

    object_type = models.CharField(max_length=32, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    object_label = models.CharField(max_length=300, blank=True)
    inputs: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """What the task was given; a retry uses the same."""

    phase = models.CharField(max_length=64, blank=True)
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(null=True, blank=True)
    unit = models.CharField(max_length=32, blank=True)
    current = models.CharField(max_length=500, blank=True)
    warnings = models.PositiveIntegerField(default=0)
    phases: models.JSONField[Any, Any] = models.JSONField(default=list)
    """[{"name", "started"}], in order, times in ISO 8601."""
    rate = models.FloatField(default=0.0)
    """Units a second, smoothed (0.7 old + 0.3 new); 0 before the first two samples."""
    samples = models.PositiveIntegerField(default=0)
    log = models.TextField(blank=True)
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=64, blank=True)
    advice = models.CharField(max_length=500, blank=True)
    result: models.JSONField[Any, Any] = models.JSONField(default=dict)

    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    retry_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="retries")
    created_at = models.DateTimeField(default=timezone.now)
    queued_at = models.DateTimeField(default=timezone.now)
    """Since when a worker could have taken it; waiting for the host does not count."""
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    progress_at = models.DateTimeField(null=True, blank=True)
    automatic = models.BooleanField(default=False)
    """A lost job started again by itself: that happens once."""

    token = models.CharField(max_length=64)
    """What a report from a host must carry to be believed."""
    tick = models.PositiveIntegerField(default=0)
    """Number of the newest progress report; older ones are ignored."""
    final_report: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    """The closing report, kept until every numbered report before it has been stored."""

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["kind", "state"]), models.Index(fields=["host", "-id"])]
        constraints = [
            models.UniqueConstraint(
                fields=["host", "kind"],
                condition=models.Q(kind__in=["scan", "publish"]) & models.Q(state__in=[s.value for s in UNFINISHED]),
                name="one_unfinished_scan_and_publish_per_host",
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} #{self.pk}"

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED

    @property
    def queue(self) -> str:
        """Where its task goes: the host's own queue, or the control side's."""
        on_host = kinds.BY_SLUG[self.kind].on_host
        return self.host.queue if on_host and self.host else kinds.CONTROL_QUEUE

    @property
    def waits_for(self) -> str:
        """Why it cannot begin yet, in words; "" when a worker may take it."""
        if not kinds.BY_SLUG[self.kind].on_host or self.host is None:
            return ""
        return str(self.host.why_jobs_wait)

    @property
    def label(self) -> str:
        """What the work is about, for lists: the object, else the host."""
        return self.object_label or (self.host.name if self.host else "")

    @property
    def duration(self) -> timedelta | None:
        """How long it ran, or runs; None before it starts."""
        if self.started_at is None:
            return None
        end: datetime = self.finished_at or timezone.now()
        return end - self.started_at

    @property
    def silence(self) -> timedelta | None:
        """How long a begun job has said nothing, once that is longer than usual; it may have died with its machine."""
        if self.state not in (State.RUNNING, State.CANCELLING) or self.heartbeat_at is None:
            return None
        silent = timezone.now() - self.heartbeat_at
        return silent if silent > SILENT_AFTER else None

    @property
    def starts_again(self) -> bool:
        """Whether it is started again by itself once it is lost: at most once, and only what may be done twice."""
        return self.state != State.CANCELLING and not self.automatic and kinds.BY_SLUG[self.kind].repeatable

    @property
    def measured_rate(self) -> float | None:
        """Units a second, after three samples and while reports come."""
        heard = self.heartbeat_at is None or timezone.now() - self.heartbeat_at < ESTIMATE_HOLDS_FOR
        known = heard and self.samples >= 3 and self.rate > 0 and not self.is_finished
        return self.rate if known else None

    @property
    def seconds_left(self) -> int | None:
        """Smoothed estimate, where there is a rate and a total."""
        rate = self.measured_rate
        return int(max(self.total - self.done, 0) / rate) if rate and self.total else None


class JobReport(models.Model):
    """A numbered report that has been stored: each counts once, whatever the broker delivers."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="reports")
    sequence = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "sequence"], name="each_report_once")]

    def __str__(self) -> str:
        return f"job {self.job_id} report {self.sequence}"


class ControlRound(models.Model):
    """When the control worker went its round last; one row, from its first round on."""

    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"round at {self.at:%Y-%m-%d %H:%M:%S}"
