"""Rows of files that serve other models: encoders, VAEs, projectors, drafters, codecs, prompt enhancers."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from gpus_app.models import Host
from quartermaster_site.jobs.models import Job


class Component(models.Model):
    """One component file as the last scan classed it. A chat model is one too: image models use it as text encoder."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="components")
    path = models.CharField(max_length=1024)
    role = models.CharField(max_length=16)
    """`models_app.core.components.signals` names them."""
    family = models.CharField(max_length=64, blank=True)
    """Family of a VAE, architecture of an encoder, kind of a drafter, model family of a prompt enhancer."""
    width = models.PositiveBigIntegerField(default=0)
    """Hidden width of an encoder, latent channels of a VAE; 0 where it does not matter."""
    block_count = models.PositiveBigIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    mtime_ns = models.BigIntegerField(default=0)
    mmproj = models.CharField(max_length=1024, blank=True)
    """The projector that a text encoder sees with."""
    vision = models.BooleanField(default=False)
    recognised_by = models.CharField(max_length=200, blank=True)
    withheld = models.CharField(max_length=200, blank=True)
    """Why no model is given this file."""
    away_since = models.DateTimeField(null=True, blank=True)
    """Its folder could not be read since then: nothing is known to have changed."""
    first_seen_at = models.DateTimeField(default=timezone.now)
    last_scan = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["path"]
        indexes = [models.Index(fields=["host", "role"], name="components_by_role")]
        constraints = [models.UniqueConstraint(fields=["host", "path"], name="one_component_per_path")]

    def __str__(self) -> str:
        return self.path
