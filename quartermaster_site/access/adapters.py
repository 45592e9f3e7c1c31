"""What allauth may do here: sign people in. Accounts are made by an administrator, never by a visitor."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context, ratelimit
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest

from quartermaster_site.http import client_address, local_path

_NO_ADDRESS = "0.0.0.0"  # noqa: S104 - a value that is stored, no address that is listened on


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """The peer of the socket; a Unix socket has none."""
        return client_address(request) or _NO_ADDRESS

    def is_safe_url(self, url: str) -> bool:
        """Sign-in and sign-out lead to paths of this site alone, not to all names that it answers under."""
        return bool(local_path(context.request, url, default=""))

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Failures are counted by name alone: allauth's own key holds the host name, which a client can vary."""
        return attempts_key(str(credentials.get("username") or credentials.get("email") or ""))


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False


def attempts_key(name: str) -> str:
    return f"sign-in:{name.casefold()}"


def forget_failures(name: str) -> None:
    """Failed sign-ins of this person no longer count (web.md 5.1), nor do those from this machine."""
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = "127.0.0.1"
    ratelimit.clear(request, action="login_failed", key=attempts_key(name))
