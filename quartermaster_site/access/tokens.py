"""Tokens with which scripts act for a person at `/api/v1/`: shown once, stored as a hash, as strong as the person."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import ApiToken
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import NotFound, Refused

LIFETIMES_DAYS = (30, 90, 365, 0)
"""What may be chosen; 0 is no end."""
MOST_TOKENS = 50
_PREFIX = "qmt-"
_SHOWN = 8
_NOTE_USE_AFTER = timedelta(minutes=10)
"""The time of the last use is kept to ten minutes: a script may ask many times a second."""


def create_token(*, name: str, days: int, actor: Actor) -> tuple[ApiToken, str]:
    """A token of the person who acts, and its secret. Raises Refused with a message per field."""
    require(actor.user, Level.VIEW)
    name, problems = name.strip(), {}
    if not name or len(name) > 64 or not name.isprintable():
        problems["name"] = "Write a name of at most 64 characters, such as the machine that uses it."
    if days not in LIFETIMES_DAYS:
        problems["days"] = f"One of {', '.join(str(item) for item in LIFETIMES_DAYS)} days; 0 is no end."
    secret = _PREFIX + secrets.token_hex(24)
    with transaction.atomic():
        own = ApiToken.objects.select_for_update().filter(user=actor.user)
        if own.filter(name=name).exists():
            problems["name"] = "You have a token of this name already."
        if own.count() >= MOST_TOKENS:
            problems["name"] = f"A person has at most {MOST_TOKENS} tokens: revoke one first."
        if problems:
            raise Refused("The token cannot be made like this.", fields=problems)
        expires_at = timezone.now() + timedelta(days=days) if days else None
        prefix = secret[: len(_PREFIX) + _SHOWN]
        row = ApiToken.objects.create(
            user=actor.user, name=name, prefix=prefix, digest=digest_of(secret), expires_at=expires_at
        )
        record(actor, "token.create", subject=row, changes={"expires": [None, (days and f"in {days} days") or "never"]})
    return row, secret


def revoke_token(*, user: Any, number: int, actor: Actor) -> None:
    """End a token of `user`; those of others only an administrator may."""
    if actor.user is None or actor.user.pk != user.pk:
        require(actor.user, Level.MANAGE)
    row = ApiToken.objects.filter(user=user, pk=number).first()
    if row is None:
        raise NotFound("There is no such token any more.")
    record(actor, "token.revoke", subject=row)
    row.delete()


def person_of(secret: str) -> Any:
    """The person behind a token; None where it is unknown or over, or the person may not sign in now."""
    row = ApiToken.objects.select_related("user__account").filter(digest=digest_of(secret)).first()
    now = timezone.now()
    if row is None or (row.expires_at is not None and row.expires_at <= now) or not row.user.is_active:
        return None
    account = getattr(row.user, "account", None)
    if account is not None and account.must_change_password:
        return None
    if row.last_used_at is None or now - row.last_used_at > _NOTE_USE_AFTER:
        ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
    return row.user


def digest_of(secret: str) -> str:
    """A plain hash is enough for 192 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
