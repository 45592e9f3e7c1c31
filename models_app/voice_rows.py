"""Voices that people gave to a host's speech servers, what those servers said last, and what was tried with them.

A server keeps voices in its memory only (qwentts.md 5.3): the rows are what lasts. Files lie in the database, since
the host's worker reads nothing but the messages of its jobs.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from gpus_app.models import Host
from quartermaster_site.jobs.models import Job


class Voice(models.Model):
    """One voice of a host, for every base model that it fits."""

    class Form(models.TextChoices):
        WAV = "wav", "recording"
        LATENTS = "latents", "latents"

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="voices")
    name = models.CharField(max_length=64)
    form = models.CharField(max_length=8, choices=Form.choices)
    ref_text = models.CharField(max_length=2000, blank=True)
    """What is said in the recording; with it a server clones more closely."""
    wav = models.BinaryField(default=b"")
    spk = models.BinaryField(default=b"")
    rvq = models.BinaryField(default=b"")
    sha256 = models.CharField(max_length=64)
    """Of what is stored: the recording, or the speaker file followed by the codes."""
    size_bytes = models.PositiveIntegerField()
    seconds = models.FloatField()
    width = models.PositiveIntegerField(default=0)
    """Of the talkers that latents were made for; 0 for a recording, which fits any."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["host_id", "name"]
        constraints = [models.UniqueConstraint(fields=["host", "name"], name="one_voice_per_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def files(self) -> dict[str, bytes]:
        """Field of a registration -> the bytes that it carries."""
        kept = {"wav_b64": self.wav} if self.form == self.Form.WAV else {"spk_b64": self.spk, "rvq_b64": self.rvq}
        return {field: bytes(data) for field, data in kept.items()}


class SpeechServer(models.Model):
    """The running server of one speech model: where it is, and the voices that it listed last."""

    row = models.OneToOneField("models_app.Row", on_delete=models.CASCADE, related_name="speech_server")
    url = models.CharField(max_length=300, blank=True)
    """As the host's worker reaches it; blank: through the router of the host."""
    listed: models.JSONField[Any, Any] = models.JSONField(default=list)
    """[{"name", "kind"}], kind `speaker` or `registered`."""
    seen_at = models.DateTimeField(null=True, blank=True)
    """When it answered last."""
    problem = models.CharField(max_length=500, blank=True)
    """Why it did not answer when it was asked last."""
    served = models.CharField(max_length=40, blank=True)
    """Since when the router had it loaded as the voices were sent: another time is another process, without them."""

    def __str__(self) -> str:
        return f"speech server of {self.row_id}"


class Audition(models.Model):
    """A short text that somebody had a server speak. The newest few of a model are kept."""

    row = models.ForeignKey("models_app.Row", on_delete=models.CASCADE, related_name="auditions")
    job = models.OneToOneField(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="audition")
    request: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """The body of the request."""
    audio = models.BinaryField(default=b"")
    """A WAV; empty until it has come."""
    seconds = models.FloatField(default=0.0)
    took_seconds = models.FloatField(default=0.0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"audition {self.pk}"
