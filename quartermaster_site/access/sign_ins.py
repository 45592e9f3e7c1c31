"""Sign-ins, sign-outs, chosen passwords and second factors in the audit log."""

from __future__ import annotations

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.signals import password_changed, password_set
from allauth.mfa.signals import (
    authentication_failed,
    authenticator_added,
    authenticator_removed,
    authenticator_reset,
)
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.gate import SIGNED_IN_FROM
from quartermaster_site.access.models import Account, AuditEntry
from quartermaster_site.access.networks import Standing
from quartermaster_site.access.permissions import Level, may
from quartermaster_site.http import client_address


def _actor(request: HttpRequest | None, user: Any, name: str) -> Actor:
    return Actor(
        user=user,
        name=name or "anonymous",
        address=client_address(request) if request else "",
        request_id=getattr(request, "request_id", ""),
    )


_FACTORS = {"totp": "a code of an app", "recovery_codes": "a recovery code", "webauthn": "a passkey"}
"""Second factor of allauth -> in words."""


@receiver(user_logged_in)
def signed_in(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if "REMOTE_ADDR" in request.META:
        request.session[SIGNED_IN_FROM] = client_address(request)
    elsewhere = getattr(request, "standing", None) is Standing.AS_VIEWER and may(user, Level.MANAGE)
    reasons = [_means(request, user), "with the rights of a viewer: no address of admins" if elsewhere else ""]
    reason = "; ".join(filter(None, reasons))
    record(_actor(request, user, user.get_username()), "sign-in", subject=user, reason=reason)


def _means(request: HttpRequest, user: Any) -> str:
    """By which second factor, or passkey alone, somebody came in; "" for a password or another server alone."""
    found = [entry for entry in get_authentication_records(request, user) if entry.get("method") == "mfa"]
    if not found:
        return ""
    means = _FACTORS.get(str(found[-1].get("type")), "a second factor")
    return f"by {means} alone" if found[-1].get("passwordless") else f"and by {means}"


@receiver(user_logged_out)
def signed_out(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if user is not None:
        record(_actor(request, user, user.get_username()), "sign-out", subject=user)


@receiver(user_login_failed)
def refused(sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any) -> None:
    """The name as typed, cut: somebody may have typed a password there."""
    name = str(credentials.get("username") or credentials.get("email") or "")[:40]
    record(_actor(request, None, "anonymous"), "sign-in", label=name, result=AuditEntry.Result.REFUSED)


@receiver(password_changed)
@receiver(password_set)
def chose_password(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    """From now on it is the person's own."""
    Account.objects.filter(user=user, must_change_password=True).update(must_change_password=False)
    record(_actor(request, user, user.get_username()), "user.password", subject=user, reason="chosen by the person")


@receiver(authenticator_added)
@receiver(authenticator_removed)
@receiver(authenticator_reset)
def changed_factor(
    sender: Any, signal: Any, request: HttpRequest, user: Any, authenticator: Any, **kwargs: Any
) -> None:
    """A passkey, an app or recovery codes came, went, or were made anew."""
    verbs = {authenticator_added: "added", authenticator_removed: "removed"}
    reason = f"{_FACTORS.get(authenticator.type, authenticator.type)} {verbs.get(signal, 'made anew')}"
    record(_actor(request, user, user.get_username()), "user.factor", subject=user, reason=reason)


@receiver(authentication_failed)
def wrong_code(sender: Any, request: HttpRequest, user: Any, authenticator: Any, **kwargs: Any) -> None:
    """The password was right, what came after it was not."""
    reason = f"wrong: {_FACTORS.get(authenticator.type, authenticator.type)}"
    refused_result = AuditEntry.Result.REFUSED
    record(_actor(request, None, "anonymous"), "sign-in", subject=user, result=refused_result, reason=reason)
