"""First administrator, the wizard's end, passwords and preferences."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import Account, Installation, Role
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.access.selectors import administrator_exists
from quartermaster_site.access.throttling import forget_failures
from quartermaster_site.errors import NotAllowed, Refused

_USED = "This setup link does not work any more. Start Quartermaster again: it prints a fresh one."


def issue_setup_token() -> str:
    """A fresh one-time token; an older one stops working. Only its hash is stored."""
    token = secrets.token_urlsafe(24)
    Installation.objects.update_or_create(pk=1, defaults={"setup_token_digest": _digest(token)})
    return token


def claim_setup(*, token: str) -> str:
    """Check the token of a setup link; returns the proof that `create_administrator` asks for."""
    digest = _digest(token)
    _require_proof(digest)
    return digest


def holds_setup(*, proof: str) -> bool:
    """Whether a claimed link still opens the wizard: a later start prints another one."""
    try:
        _require_proof(proof)
    except NotAllowed:
        return False
    return True


def create_administrator(*, proof: str, username: str, email: str, password: str, actor: Actor) -> Any:
    """Make the first administrator and use the token up. Raises Refused with field messages."""
    user = get_user_model()(username=username.strip(), email=email.strip())
    _check_person(user, password)
    user.set_password(password)
    with transaction.atomic():
        Installation.objects.select_for_update().filter(pk=1).first()
        _require_proof(proof)
        user.save()
        Account.objects.create(user=user, role=Role.ADMIN)
        Installation.objects.filter(pk=1).update(setup_token_digest="")
        record(actor, "user.create", subject=user, changes={"role": [None, Role.ADMIN.value]}, reason="first-run setup")
    return user


def finish_setup(*, actor: Actor) -> None:
    """Close the wizard for good."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        row, _ = Installation.objects.select_for_update().get_or_create(pk=1)
        if row.setup_finished_at is None:
            row.setup_finished_at = timezone.now()
            row.save()
            record(actor, "setup.finish")


def set_password(*, user: Any, password: str | None) -> str:
    """The way back in, for the command line: None makes a password. Sessions that are open end by themselves."""
    word = secrets.token_urlsafe(12) if password is None else password
    try:
        validate_password(word, user)
    except ValidationError as error:
        raise Refused("This password cannot be used.", fields={"password": " ".join(error.messages)}) from error
    with transaction.atomic():
        user.set_password(word)
        user.is_active = True
        user.save()
        record(Actor(), "user.password", subject=user, reason="set on the command line")
    forget_failures(user.get_username())
    return word


def _check_person(user: Any, password: str | None) -> None:
    problems: dict[str, str] = {}
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        problems.update({name: " ".join(messages) for name, messages in error.message_dict.items()})
    try:
        if password is not None:
            validate_password(password, user)
    except ValidationError as error:
        problems["password"] = " ".join(error.messages)
    if problems:
        raise Refused("This cannot be stored like this.", fields=problems)


def _require_proof(digest: str) -> None:
    row = Installation.objects.filter(pk=1).first()
    stored = row.setup_token_digest if row else ""
    if not stored or administrator_exists() or not hmac.compare_digest(stored, digest):
        raise NotAllowed(_USED)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def save_preferences(*, user: Any, values: Mapping[str, Any]) -> Account:
    """A person's own: theme, density, time zone, shortcuts. They need no audit entry."""
    account, _ = Account.objects.update_or_create(user=user, defaults=dict(values))
    return account


def save_email(*, user: Any, email: str, actor: Actor) -> None:
    """A person's own address, a note for administrators. Raises Refused."""
    if email == user.email:
        return
    before, user.email = user.email, email
    _check_person(user, None)
    with transaction.atomic():
        user.save(update_fields=["email"])
        record(actor, "user.change", subject=user, changes={"email": [before, email]})
