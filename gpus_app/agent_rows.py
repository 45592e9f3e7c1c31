"""How the machine of a host was enrolled: its code, public key and account at the broker, and who answers for it."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Agent(models.Model):
    """The enrolment of one host. Neither the code nor the broker's password nor a private key is stored."""

    host = models.OneToOneField("gpus_app.Host", on_delete=models.CASCADE, related_name="agent")
    code_digest = models.CharField(max_length=64, unique=True, null=True, blank=True)
    """SHA-256 of the newest code. It stays after its use, so that a second use is told what happened."""
    code_expires_at = models.DateTimeField(null=True, blank=True)
    code_used_at = models.DateTimeField(null=True, blank=True)

    enrolment = models.CharField(max_length=32, unique=True, null=True, blank=True)
    """The identity of the machine; null before it enrolled, and again once that was revoked."""
    public_key = models.CharField(max_length=64, blank=True)
    """Ed25519, in base64: what the machine reports is signed with the key that only it has."""
    account_sha256 = models.CharField(max_length=64, blank=True)
    """Of the password of its account at the broker; empty where the broker has one account for all."""
    enrolled_at = models.DateTimeField(null=True, blank=True)
    address = models.CharField(max_length=64, blank=True)
    """From where it last asked over HTTP."""

    heard_before_at = models.DateTimeField(null=True, blank=True)
    """When the machine was heard last that was cut off."""
    attempt_at = models.DateTimeField(null=True, blank=True)
    attempt_problem = models.CharField(max_length=300, blank=True)
    """Why the last use of a code was refused."""

    instance = models.CharField(max_length=32, blank=True)
    """The process that answers for the host: each start of an agent has another."""
    instance_since = models.DateTimeField(null=True, blank=True)
    instance_seen_at = models.DateTimeField(null=True, blank=True)
    sequence = models.PositiveBigIntegerField(default=0)
    """Number of its newest heartbeat: a message that comes twice counts once."""
    other_instance = models.CharField(max_length=32, blank=True)
    """A second process with the same credentials, which is told to stop."""
    other_seen_at = models.DateTimeField(null=True, blank=True)
    other_worker = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"agent of {self.host}"

    @property
    def has_unused_code(self) -> bool:
        """Whether the newest code was never used, be it good or over."""
        return self.enrolment is None and self.code_used_at is None and self.code_expires_at is not None

    @property
    def awaits_machine(self) -> bool:
        """Whether a code is out that nobody has used yet."""
        until = self.code_expires_at
        return self.has_unused_code and until is not None and until > timezone.now()
