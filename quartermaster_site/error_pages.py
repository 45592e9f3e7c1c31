"""Errors as pages. Templates: `error.html`, its fragment `error-panel`; both get `status`, `title`, `message`."""

from __future__ import annotations

import logging
import math
import sys
import uuid
from typing import Any

from django.conf import settings
from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.cache import cache
from django.core.exceptions import DisallowedHost, RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.encoding import escape_uri_path
from django.utils.html import escape
from redis import RedisError

from quartermaster_site.errors import Busy, QuartermasterError, SiteError, Unavailable
from quartermaster_site.figures import counted
from quartermaster_site.http import API_PATH, wants_fragment

log = logging.getLogger(__name__)
_PROBE_SECONDS = 5
_NO_DATABASE = (
    "The database does not answer, is held by something else, or has no room left. What you sent was not stored: go "
    "back and try again in a moment."
)

_NO_BROKER = (
    "Redis does not answer (QM_REDIS_URL). Signing in, and whatever else is counted or started through it, waits until "
    "it does; what is stored stays, and the other pages go on."
)


def render_error(request: HttpRequest, status: int, title: str, message: str, **extra: Any) -> HttpResponse:
    """One error as a page, as a panel for htmx, or as JSON of the API. Works without session, user or database."""
    reference = getattr(request, "request_id", "")
    request.refusal = message  # type: ignore[attr-defined] # for the audit log
    if request.path.startswith(API_PATH):
        return JsonResponse({"error": {"title": title, "message": message, "reference": reference}}, status=status)
    context = {"status": status, "title": title, "message": message, "reference": reference, **extra}
    fragment = hasattr(request, "htmx") and wants_fragment(request)
    body: str
    try:
        body = render_to_string("error.html#error-panel" if fragment else "error.html", context)
    except TemplateDoesNotExist:
        body = f"<!doctype html><title>{escape(title)}</title><h1>{escape(title)}</h1><p>{escape(message)}</p>"
    response = HttpResponse(body, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def from_error(request: HttpRequest, error: QuartermasterError) -> HttpResponse:
    """The page of an expected failure."""
    if not isinstance(error, SiteError):
        return render_error(request, 422, "This cannot be done", str(error))
    response = render_error(request, error.status, error.title, str(error), error=error)
    if isinstance(error, Busy):
        response["Retry-After"] = str(error.wait_seconds)
        response["HX-Reswap"] = "none"  # the script asks again by itself; until then the page keeps what it has
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400, or 413 where the request is simply too large."""
    if isinstance(exception, TooManyFieldsSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return render_error(request, 413, "Too large", f"A form may hold at most {most:,} fields. Nothing was changed.")
    if isinstance(exception, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE >> 20
        return render_error(request, 413, "Too large", f"A form may hold at most {most} MiB. Nothing was changed.")
    if isinstance(exception, SessionInterrupted) and _is_caused_by_database(exception):
        return render_error(request, 503, Unavailable.title, _NO_DATABASE)
    if isinstance(exception, DisallowedHost):
        log.warning("%s", exception)
        message = "The site does not answer under this name. Whoever runs it can add the name with QM_ALLOWED_HOSTS."
        return render_error(request, 400, "Unknown address", message)
    return render_error(request, 400, "Bad request", "The server could not read this request.")


def _is_caused_by_database(exception: BaseException | None) -> bool:
    """Django calls a session that cannot be stored a bad request, whatever the reason."""
    while exception is not None and not isinstance(exception, OperationalError):
        exception = exception.__cause__ or exception.__context__
    return exception is not None


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error(request, 403, "Not allowed", str(exception) or "Your role does not allow this.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error(request, 404, "Not found", "There is nothing at this address, or you may not see it.")


def wrong_method(request: HttpRequest, empty: HttpResponse) -> HttpResponse:
    """405: what an address typed or reloaded gets where only a form can go."""
    message = "This address only takes what a form sends. Go back to the form, or start from the overview."
    if request.path.startswith(API_PATH):
        message = f"This address does not take {request.method}."
    response = render_error(request, 405, "Nothing to see here", message)
    response["Allow"] = empty.get("Allow", "")
    return response


def too_many_requests(request: HttpRequest, wait_seconds: int) -> HttpResponse:
    """What is shown when a limit is reached, or when attempts cannot be counted because nothing can be stored."""
    if not cache.add(f"probe:{uuid.uuid4().hex}", 1, _PROBE_SECONDS):
        return render_error(request, 503, Unavailable.title, _NO_DATABASE)
    wait = counted(wait_seconds, "second") if wait_seconds < 100 else counted(math.ceil(wait_seconds / 60), "minute")
    response = render_error(request, 429, "Too many attempts", f"Nothing was checked. Try again in {wait}.")
    response["Retry-After"] = str(wait_seconds)
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    reference = getattr(request, "request_id", "")
    log.error("reference %s: %s %s failed", reference, request.method, escape_uri_path(request.path))
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return render_error(request, 503, Unavailable.title, _NO_DATABASE)
    if isinstance(sys.exc_info()[1], RedisError):
        return render_error(request, 503, Unavailable.title, _NO_BROKER)
    message = f"Something went wrong on our side. The log has the details under reference {reference}."
    return render_error(request, 500, "Server error", message)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    response = render_error(
        request,
        403,
        "This form has expired",
        "Its protection token is missing or old: go back, reload the page and send the form again.",
    )
    request.refusal = None  # type: ignore[attr-defined] # whoever forged it: not the person whose session it came with
    return response
