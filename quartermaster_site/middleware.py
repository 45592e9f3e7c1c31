"""What happens around every request: an id, its size, session age, sign-in, setup gate, cache, expected errors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django_htmx.http import HttpResponseClientRedirect

from gpus_app.core.errors import QuartermasterError
from quartermaster_site import error_pages
from quartermaster_site.access import selectors as access
from quartermaster_site.http import API_PATH, local_path

GetResponse = Callable[[HttpRequest], HttpResponse]
_RENEW_AFTER_SECONDS = 600
_MOST_DIGITS = 12
_UNUSED_DEVICES = "camera=(), microphone=(), geolocation=(), usb=(), serial=(), payment=(), display-capture=()"
SETUP_PATH = "/setup/"
_WITHOUT_PASSWORD = ("/account/password/", "/logout/", "/healthz", settings.STATIC_URL)


def request_id(get_response: GetResponse) -> GetResponse:
    """Give the request an id that error pages, log lines and audit entries share."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.request_id = uuid.uuid4().hex[:12]  # type: ignore[attr-defined]
        return get_response(request)

    return middleware


def kept_apart(get_response: GetResponse) -> GetResponse:
    """No other site may embed an answer, and no page asks for a device that none of ours uses."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        response.headers.setdefault("Permissions-Policy", _UNUSED_DEVICES)
        return response

    return middleware


def body_size(get_response: GetResponse) -> GetResponse:
    """Refuse what is larger than any form before it is read: parts that call themselves files would go to the disk."""

    def middleware(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        too_long = len(length) > _MOST_DIGITS
        if length.isdigit() and (too_long or int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE):
            return error_pages.bad_request(request, RequestDataTooBig())
        return get_response(request)

    return middleware


def session_age(get_response: GetResponse) -> GetResponse:
    """End a session after its absolute age; otherwise renew its idle time, at most every ten minutes."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated:
            now = int(time.time())
            started = request.session.setdefault("started", now)
            if now - started > settings.SESSION_ABSOLUTE_AGE_SECONDS:
                logout(request)
            elif now - request.session.get("renewed", 0) > _RENEW_AFTER_SECONDS:
                request.session["renewed"] = now
                UserSession.objects.create_from_request(request)
        return get_response(request)

    return middleware


def own_password(get_response: GetResponse) -> GetResponse:
    """Whoever came in with a password that an administrator made is led to choosing their own."""

    def middleware(request: HttpRequest) -> HttpResponse:
        account = getattr(request.user, "account", None) if request.user.is_authenticated else None
        if account is not None and account.must_change_password and not request.path.startswith(_WITHOUT_PASSWORD):
            return _redirect(request, resolve_url("account_change_password"))
        return get_response(request)

    return middleware


def own_time(get_response: GetResponse) -> GetResponse:
    """Pages show times in the zone that the person chose."""

    def middleware(request: HttpRequest) -> HttpResponse:
        account = getattr(request.user, "account", None) if request.user.is_authenticated else None
        if account is None or not account.time_zone:
            return get_response(request)
        try:
            zone = ZoneInfo(account.time_zone)
        except (KeyError, OSError, ValueError):  # the system's table has no such zone any more
            return get_response(request)
        with timezone.override(zone):
            return get_response(request)

    return middleware


def no_store(get_response: GetResponse) -> GetResponse:
    """Pages of a signed-in person are not kept by caches, the browser's included."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if request.user.is_authenticated or request.path.startswith(SETUP_PATH):
            patch_cache_control(response, no_store=True, private=True)
        return response

    return middleware


def setup_gate(get_response: GetResponse) -> GetResponse:
    """Until an administrator exists, every page but the wizard leads to it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        open_path = request.path.startswith((SETUP_PATH, API_PATH, "/healthz", settings.STATIC_URL))
        if not open_path and not request.user.is_authenticated and not access.administrator_exists():
            return _redirect(request, SETUP_PATH)
        return get_response(request)

    return middleware


class SignedInOnly(LoginRequiredMiddleware):
    """Django's rule (every view not marked otherwise needs a sign-in) with an answer that suits htmx (W-014)."""

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> Any:
        if request.path.startswith(API_PATH):  # it asks for a token itself, and answers in JSON
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)

    def handle_no_permission(self, request: HttpRequest, view_func: Callable[..., Any]) -> Any:
        login = resolve_url(settings.LOGIN_URL)
        if request.htmx:  # type: ignore[attr-defined]
            path = _path_of(request.htmx.current_url or "/")  # type: ignore[attr-defined]
        elif request.method in ("GET", "HEAD"):
            path = request.get_full_path()
        else:  # nobody can go back to where a form was sent, but to the form
            path = local_path(request, request.META.get("HTTP_REFERER", ""))
        return _redirect(request, f"{login}?{urlencode({'next': path})}")


def _path_of(url: str) -> str:
    """The path and query of an address that a browser claims to be at. Its host may be another one behind a proxy."""
    try:
        here = urlsplit(url)
    except ValueError:
        return "/"
    return "/" + here.path.lstrip("/\\") + (f"?{here.query}" if here.query else "")


class DomainErrors:
    """Turns an expected failure into its page, and the empty answer to a wrong method into one."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code == 405 and (not response.content or request.path.startswith(API_PATH)):
            return error_pages.wrong_method(request, response)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, QuartermasterError):
            return error_pages.from_error(request, exception)
        return None


def _redirect(request: HttpRequest, url: str) -> HttpResponse:
    """An empty 200 with HX-Redirect for htmx, so that no whole page lands inside a fragment."""
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(url)
    return HttpResponseRedirect(url)
