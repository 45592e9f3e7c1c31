"""API keys of the router's clients. They sign nobody in here: the router enforces them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from gpus_app.models import Host
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.keys import placeholder_of

PREFIX_CHARACTERS = 8


class ApiKey(models.Model):
    """One key of a client, or the key of a host's own worker. The secret is sealed and shown once."""

    name = models.CharField(max_length=80)
    hosts: models.ManyToManyField[Host, Any] = models.ManyToManyField(Host, related_name="api_keys")
    prefix = models.CharField(max_length=PREFIX_CHARACTERS)
    sealed = models.TextField(blank=True)
    """Empty once the key is over and no file holds it any more."""
    digest = models.CharField(max_length=64, unique=True)
    """SHA-256 of the secret, to know it where it turns up."""
    everything = models.BooleanField(default=True)
    """Every model. Else `files` (with all their variants) and `ids` alone."""
    files: models.JSONField[Any, Any] = models.JSONField(default=list)
    ids: models.JSONField[Any, Any] = models.JSONField(default=list)
    note = models.CharField(max_length=300, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    is_own = models.BooleanField(default=False)
    """Made by its owner for themselves: it reaches no more than they may use, which every write looks at anew."""
    is_service = models.BooleanField(default=False)
    """Of a host's worker: never shown, and it keeps the list of keys from being empty."""
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    expiry_noted = models.BooleanField(default=False)
    successor = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    """The key that a rotation made in its place."""
    form_token = models.CharField(max_length=64, blank=True, db_index=True)
    """Of the form that made it: sent twice it makes one key."""
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def placeholder(self) -> str:
        """What stands in texts instead of the secret."""
        return placeholder_of(self.pk)

    def is_over(self, now: datetime) -> bool:
        """Revoked or expired: no file should hold it."""
        return self.revoked_at is not None or (self.expires_at is not None and self.expires_at <= now)


class KeyPolicy(models.Model):
    """Whether the router of a host must ask for a key, and how its file holds them. No row before the first key."""

    class Mode(models.TextChoices):
        INLINE = "inline", "secrets in the file"
        ENVIRONMENT = "environment", "names of environment variables"

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="key_policy")
    required = models.BooleanField(default=False)
    mode = models.CharField(max_length=16, choices=Mode, default=Mode.INLINE)
    variables_set: models.JSONField[Any, Any] = models.JSONField(default=list)
    """Keys whose variables an administrator says are set: a router refuses a file that names one that is not."""
    self_service = models.BooleanField(default=False)
    """Operators and editors make keys of their own for this host."""

    def __str__(self) -> str:
        return f"keys of {self.host_id}"

    def names_variables(self, dialect: str) -> bool:
        """Whether a file of this dialect names variables: not every router reads those."""
        return self.mode == self.Mode.ENVIRONMENT and BY_SLUG[dialect].names_variables

    def waits_for_variable(self, key: ApiKey, dialect: str) -> bool:
        """A key that no file may name yet. That of the worker never waits: without a key a router is open."""
        return self.names_variables(dialect) and not key.is_service and key.pk not in self.variables_set
