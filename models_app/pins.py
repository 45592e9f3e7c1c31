"""Rows of what people pinned: overrides, their variants, and every change that was made to them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from gpus_app.models import Host
from quartermaster_site.ordered_json import OrderedJSONField

PATTERN = Q(match__contains="*") | Q(match__contains="?")
"""Rows that are rules: their match is a pattern."""

ORDER = ("position", "id")
"""In which rules are tried. A query that counts something beside them has to ask for it."""


class PinnedFields(models.Model):
    """A sparse set of fields that several people edit: a save names the version that it started from."""

    fields = OrderedJSONField(default=dict)
    """Set fields only, camelCase keys of web.md 6; absent means automatic, or inherited."""
    version = models.PositiveIntegerField(default=0)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True


class Override(PinnedFields):
    """What people pinned for a model. Tied to the path, so that it outlives a file that is away for a while.

    `match` is a path, or a pattern with * and ?. Paths are tried before patterns, patterns in order of `position`; the
    first row that matches counts alone.
    """

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="overrides")
    match = models.CharField(max_length=1024)
    quant = models.CharField(max_length=40, blank=True)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = [*ORDER]
        constraints = [models.UniqueConstraint(fields=["host", "match", "quant"], name="one_override_per_match")]

    def __str__(self) -> str:
        return self.match


class Variant(PinnedFields):
    """A named set of fields over an override: a profile of its own. The name `vision` tunes the vision twin."""

    override = models.ForeignKey(Override, on_delete=models.CASCADE, related_name="variants")
    name = models.CharField(max_length=40)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint("override", Lower("name"), name="one_variant_per_name")]

    def __str__(self) -> str:
        return self.name


class Change(models.Model):
    """One save of what is pinned for a match. Kept when the override or the variant goes; never edited.

    A variant that all chat models of a host share has a blank match.
    """

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="pin_changes")
    match = models.CharField(max_length=1024)
    quant = models.CharField(max_length=40, blank=True)
    variant = models.CharField(max_length=40, blank=True)
    """Blank: the model's own fields."""
    rule = models.PositiveBigIntegerField(default=0)
    """The number of the rule that this is about, also after it is deleted; 0: a model or a shared variant."""
    action = models.CharField(max_length=16)
    changes = OrderedJSONField(default=dict)
    """Key -> [before, after], null where the field was not set; changed fields only."""
    after = OrderedJSONField(default=dict)
    """All fields after the save: what a restore brings back."""
    version = models.PositiveIntegerField(default=0)
    """The version that this save made; the same as long as the row existed."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    actor = models.CharField(max_length=150)
    """The person's name, kept when the person goes."""
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["host", "match"])]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.match}"
