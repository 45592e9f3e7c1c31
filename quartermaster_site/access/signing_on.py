"""What happens here when somebody signs in at the configured OpenID Connect server."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import requests
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import Account, AuditEntry, Role
from quartermaster_site.access.networks import group_of
from quartermaster_site.access.sign_on import SignOn
from quartermaster_site.access.tally import Tally
from quartermaster_site.errors import Unavailable
from quartermaster_site.http import client_address, client_of_request

MOST_NAME = 150
_ERROR = re.compile(r"[a-z_]{1,64}")
"""The words of OAuth for what went wrong, such as `access_denied`."""
SECONDS = 10
FAILED = Tally("sign-on")
log = logging.getLogger(__name__)
NO_GROUP = "None of your groups there may sign in here. Whoever looks after the groups can add you to one."
NO_NAME = "The server does not say your user name (preferred_username), or not one that can be used here."
TAKEN = (
    "There is an account of your name here already. Sign in with its password, then connect both under Account. If you"
    " have never had one here, ask an administrator."
)


class Asking(requests.Session):
    """Requests to the server. What fails while it is looked for is a page that says so; the rest allauth handles."""

    def request(self, method: str, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        try:
            answer = super().request(method, url, *args, **{"timeout": SECONDS, **kwargs})
        except requests.RequestException as error:
            log.warning("The sign-on server does not answer: %s", error)
            raise Unavailable("The server for signing in does not answer. Try again, or use a password.") from error
        if method == "GET" and answer.status_code >= 400:
            log.warning("The sign-on server answers %s at %s", answer.status_code, answer.url)
            raise Unavailable(f"The server for signing in answers with status {answer.status_code}. Try again later.")
        return answer


def role_of(sociallogin: Any) -> str:
    """The role that the groups at the server give; empty for none."""
    configured: SignOn | None = settings.SIGN_ON
    if configured is None:
        return ""
    said = sociallogin.account.extra_data
    # Groups can stand in either: what the server says when asked, or what it signed.
    parts = [said.get("userinfo"), said.get("id_token")] if {"userinfo", "id_token"} & said.keys() else [said]
    roles = (configured.role_of(part) for part in parts if isinstance(part, dict))
    return max(filter(None, roles), key=list(Role.values).index, default="")


def name_problem(user: Any) -> str:
    """Why nobody can be made of this name; empty where it is fine."""
    try:
        get_user_model()._meta.get_field("username").run_validators(user.username)
    except ValidationError:
        return NO_NAME
    if not user.username or len(user.username) >= MOST_NAME:  # a longer one was cut, and might be somebody else's
        return NO_NAME
    return TAKEN if get_user_model().objects.filter(username__iexact=user.username).exists() else ""


def welcome(request: HttpRequest, sociallogin: Any, save: Callable[..., Any]) -> Any:
    """Store somebody who comes for the first time, with the role of their groups and no password."""
    role = role_of(sociallogin)
    with transaction.atomic():
        user = save(request, sociallogin)
        Account.objects.create(user=user, role=role)
        changes = {"role": [None, role], "email": [None, user.email]}
        record(_actor(request, user), "user.create", subject=user, changes=changes, reason="first sign-on")
    return user


def follow_role(request: HttpRequest, user: Any, role: str) -> None:
    """Give somebody the role that their groups give now. The last active administrator stays one."""
    with transaction.atomic():
        list(Account.objects.select_for_update().filter(role=Role.ADMIN).values_list("pk", flat=True))
        account, _ = Account.objects.get_or_create(user=user)
        if account.role == role:
            return
        others = Account.objects.filter(role=Role.ADMIN, user__is_active=True).exclude(user=user)
        if account.role == Role.ADMIN and not others.exists():
            log.warning("%s stays an administrator against their groups: there is no other.", user)
            return
        before, account.role = account.role, role
        account.save(update_fields=["role"])
        user.account = account
        changes = {"role": [before, role]}
        record(_actor(request, user), "user.change", subject=user, changes=changes, reason="groups of the sign-on")


def refused(request: HttpRequest, sociallogin: Any, why: str) -> HttpResponse:
    """The page for somebody who may not come in."""
    name = sociallogin.user.username[:150]
    reason = why.partition(".")[0]
    record(_actor(request, None), "sign-in", label=name[:40], result=AuditEntry.Result.REFUSED, reason=reason)
    context = {"why": why, "name": name, "server": settings.SIGN_ON.name if settings.SIGN_ON else ""}
    return render(request, "account/sign_on_refused.html", context, status=403)


def note_failure(request: HttpRequest, error: Any, exception: Any) -> None:
    """The server refused, or could not be asked; the page is allauth's.

    Anybody can come with such an answer, so the audit log hears of it once a minute and address at most.
    """
    number = FAILED.count(group_of(client_of_request(request)))
    if not number:
        return
    said = request.GET.get("error", "")
    answered = f"the server answers {said}" if _ERROR.fullmatch(said) else error
    log.warning("A sign-on failed: %s %s", answered, exception)
    reason = f"the sign-on failed: {type(exception).__name__ if exception else answered}"
    changes = {"failed": [None, number]} if number > 1 else {}
    record(_actor(request, None), "sign-in", changes=changes, result=AuditEntry.Result.FAILED, reason=reason)


def _actor(request: HttpRequest, user: Any) -> Actor:
    return Actor(
        user=user,
        name=user.get_username() if user else "anonymous",
        address=client_address(request),
        request_id=getattr(request, "request_id", ""),
    )
