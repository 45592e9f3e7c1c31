"""The request type, and the one place that decides between a whole page and a fragment of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from quartermaster_site.access.networks import Address, client_of

_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})")
API_PATH = "/api/v1/"
"""Below it programs ask: answers and errors are JSON."""
STOP_POLLING = 286
"""The status that ends an htmx 2 poll (W-021)."""


class Request(HttpRequest):
    """A request as our views see it: signed in, with htmx details and an id for the log."""

    htmx: HtmxDetails
    user: AbstractUser  # type: ignore[assignment]
    request_id: str


def wants_fragment(request: HttpRequest) -> bool:
    """An htmx request that is neither boosted nor a history restore: those need the whole page."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    fragments: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    """The whole page, or for htmx the fragment whose name is the target's id (else the first of `fragments`)."""
    name = template
    if fragments and wants_fragment(request):
        target = request.htmx.target  # type: ignore[attr-defined]
        name = f"{template}#{target if target in fragments else fragments[0]}"
    response = render(request, name, dict(context or {}), status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def go_to(request: HttpRequest, url: str) -> HttpResponse:
    """After a successful POST: a client redirect for htmx, a plain one otherwise (W-015)."""
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(url)
    return HttpResponseRedirect(url)


def part_of(request: HttpRequest, data: bytes, content_type: str) -> HttpResponse:
    """All of `data`, or the one range of it that a player asks for: some play nothing that they cannot jump in."""
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    response = HttpResponse(data, content_type=content_type)
    if found and (found[1] or found[2]):
        first = int(found[1]) if found[1] else max(0, len(data) - int(found[2]))
        last = min(int(found[2]), len(data) - 1) if found[1] and found[2] else len(data) - 1
        if first > last:
            response = HttpResponse(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
        else:
            response = HttpResponse(data[first : last + 1], content_type=content_type, status=206)
            response["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
    response["Accept-Ranges"] = "bytes"
    return response


def local_path(request: HttpRequest, candidate: str, default: str = "/") -> str:
    """`candidate` when it is a path of this site, else `default`."""
    safe = url_has_allowed_host_and_scheme(
        candidate, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    if not candidate or not safe:
        return default
    parts = urlsplit(candidate)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    # Without its host, http://this.site//elsewhere/ would lead elsewhere.
    return path if path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None) else default


def client_of_request(request: HttpRequest) -> Address | None:
    """Who sent a request, as far as it can be told: the rule for the network list, for limits and for the audit log."""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    return client_of(request.META.get("REMOTE_ADDR", ""), forwarded, settings.TRUSTED_PROXIES)


def client_address(request: HttpRequest) -> str:
    """The same as text, empty where it is not known."""
    return str(client_of_request(request) or "")
