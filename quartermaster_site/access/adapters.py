"""What allauth may do here: sign people in. Accounts are made by an administrator, never by a visitor."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal import ratelimit
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from quartermaster_site.access import throttling
from quartermaster_site.http import client_address, local_path

_NO_ADDRESS = "0.0.0.0"  # noqa: S104 - a value that is stored, no address that is listened on


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """As everywhere; a Unix socket has none."""
        return client_address(request) or _NO_ADDRESS

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
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False


def _name_in(credentials: dict[str, Any]) -> str:
    return str(credentials.get("username") or credentials.get("email") or "")
