"""What allauth may do here: sign people in. Accounts are made by an administrator or come from the configured server of
sign-ons with the role that its groups give, never by a visitor's own wish.
"""

from __future__ import annotations

from typing import Any

import requests
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal import ratelimit
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.shortcuts import resolve_url

from quartermaster_site.access import signing_on, throttling
from quartermaster_site.http import client_address, local_path

_NO_ADDRESS = "0.0.0.0"  # noqa: S104 - a value that is stored, no address that is listened on


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """As everywhere; a Unix socket has none."""
        return client_address(request) or _NO_ADDRESS

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """Not the empty form again. Whoever had to choose a password names the overview as `next`."""
        return resolve_url("access:account")

    def is_safe_url(self, url: str) -> bool:
        """Sign-in and sign-out lead to paths of this site alone, not to all names that it answers under."""
        return bool(local_path(context.request, url, default=""))

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """allauth's own key holds the host name, which a client can vary, and no address: anybody could lock a name."""
        return throttling.key_here(request, _name_in(credentials))

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count this attempt as a failure, which a success takes back. A reached limit is a page with the wait."""
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError as error:
            raise ImmediateHttpResponse(throttling.too_many_attempts(request)) from error
        key = throttling.name_key(_name_in(credentials))
        anywhere = ratelimit.consume(request, app=throttling.APP, action=throttling.ANYWHERE, key=key)
        if anywhere is None:
            raise ImmediateHttpResponse(throttling.too_many_attempts(request))
        self._login_failed_rl_usage.usage.extend(anywhere.usage)


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """People of the configured OpenID Connect server (sign_on.py). Their groups there decide at every sign-in."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Refuse whoever has no role, or a name that is taken here; else bring the role of who is known up to date."""
        sociallogin.email_addresses = []  # an address is a note here: nobody is found by it, and none is confirmed
        role = signing_on.role_of(sociallogin)
        if not role:
            raise ImmediateHttpResponse(signing_on.refused(request, sociallogin, signing_on.NO_GROUP))
        if request.user.is_authenticated:
            return  # connecting one's own account: the role stays
        if sociallogin.is_existing:
            signing_on.follow_role(request, sociallogin.user, role)
        elif problem := signing_on.name_problem(sociallogin.user):
            raise ImmediateHttpResponse(signing_on.refused(request, sociallogin, problem))

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Only through `pre_social_login`."""
        return bool(signing_on.role_of(sociallogin))

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Without a form: there is nothing to ask."""
        return True

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        return signing_on.welcome(request, sociallogin, super().save_user)

    def get_requests_session(self) -> requests.Session:
        return signing_on.Asking()

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        signing_on.note_failure(request, error, exception)


def _name_in(credentials: dict[str, Any]) -> str:
    return str(credentials.get("username") or credentials.get("email") or "")
