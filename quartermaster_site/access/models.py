"""Who may do what, and who did what. Roles are predicates in code; rows only say which role a person has."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q

from quartermaster_site.access.rules import EVERY, MOST_PATTERN, Level, Subject


class Role(models.TextChoices):
    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    EDITOR = "editor", "Editor"
    ADMIN = "admin", "Admin"


class Account(models.Model):
    """The role and preferences of one person."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="account")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    theme = models.CharField(
        max_length=8, choices=[("auto", "As the system"), ("light", "Light"), ("dark", "Dark")], default="auto"
    )
    custom_args = models.BooleanField(default=False)
    """May write custom launch arguments, which can make a server read or write other files. Admins may anyway."""

    density = models.CharField(
        max_length=12, choices=[("comfortable", "Comfortable"), ("compact", "Compact")], default="comfortable"
    )
    time_zone = models.CharField(max_length=64, blank=True)
    """A name of the time zone database; empty is UTC."""
    shortcuts = models.BooleanField(default=True)
    """Single keys do something. Whoever speaks to the machine, or types by accident, switches them off."""

    must_change_password = models.BooleanField(default=False)
    """The password was made by an administrator: every page leads to choosing one's own."""

    def __str__(self) -> str:
        return f"{self.user} ({self.get_role_display()})"


class Policy(models.Model):
    """What a user, a group, a role or everyone may do with a host, or with some models on one or all hosts.

    It replaces what the role gives, up or down; `rules.py` says which of several counts.
    """

    LEVELS: ClassVar = [(int(level), level.name.lower()) for level in Level if level < Level.MANAGE]

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="policies"
    )
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.CASCADE, related_name="policies")
    role = models.CharField(max_length=16, blank=True, choices=Role.choices)
    host = models.ForeignKey("gpus_app.Host", null=True, blank=True, on_delete=models.CASCADE, related_name="policies")
    """None: every host."""
    model = models.CharField(max_length=MOST_PATTERN, default=EVERY)
    """A pattern of ids, or with a slash of paths."""
    level = models.PositiveSmallIntegerField(choices=LEVELS, default=int(Level.VIEW))
    note = models.CharField(max_length=200, blank=True)
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        verbose_name_plural = "policies"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, group=None) | Q(user=None, role="") | Q(group=None, role=""),
                name="one_subject_per_policy",
            ),
            models.CheckConstraint(condition=Q(level__lt=int(Level.MANAGE)), name="no_policy_gives_manage"),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.model} on {self.host or 'every host'} → {self.get_level_display()}"

    @property
    def kind(self) -> Subject:
        if self.user_id is not None:
            return Subject.USER
        if self.group_id is not None:
            return Subject.GROUP
        return Subject.ROLE if self.role else Subject.EVERYONE

    @property
    def who(self) -> str:
        """The name of the subject; empty for everyone."""
        return str(self.user or self.group or self.role)

    @property
    def subject(self) -> str:
        """The subject in words."""
        return "everyone" if self.kind is Subject.EVERYONE else f"{self.kind.name.lower()} {self.who}"


class ApiToken(models.Model):
    """With it a script acts for a person at the JSON API. The secret itself is stored nowhere."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=64)
    prefix = models.CharField(max_length=16)
    """The beginning of the secret, by which a person knows it again."""
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_token_per_name")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Installation(models.Model):
    """One row: how far the first-run wizard got. The setup token is stored as a hash and works once."""

    setup_token_digest = models.CharField(max_length=64, blank=True)
    setup_finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(pk=1), name="installation_has_one_row")]

    def __str__(self) -> str:
        return "installation"


class NetworkList(models.Model):
    """One row: from which addresses the dashboard may be used (`networks.py`). Read whole, replaced whole."""

    rules: models.JSONField[Any, Any] = models.JSONField(default=list)
    """[{"network", "admins_only", "note"}] in the order of the page."""
    version = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(null=True, blank=True)
    changed_by = models.CharField(max_length=150, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="network_list_has_one_row")]

    def __str__(self) -> str:
        return "network list"


class AuditEntry(models.Model):
    """Append-only: who did what to which object, with the fields that changed."""

    class Result(models.TextChoices):
        OK = "ok", "Done"
        REFUSED = "refused", "Refused"
        FAILED = "failed", "Failed"

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    actor = models.CharField(max_length=150)
    """A user's name, `worker of HOST`, or `system`; kept when the user goes."""
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=32, blank=True)
    action = models.CharField(max_length=64, db_index=True)
    object_type = models.CharField(max_length=32, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    object_label = models.CharField(max_length=300, blank=True)
    host_slug = models.CharField(max_length=40, blank=True)
    changes: models.JSONField[Any, Any] = models.JSONField(default=dict)
    """Field -> [before, after], changed fields only."""
    result = models.CharField(max_length=8, choices=Result.choices, default=Result.OK)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object_label}"

    def changed_fields(self) -> list[tuple[str, list[Any]]]:
        """The changes for a template, where `changes.items` would be a field that is called items."""
        return list(self.changes.items())
