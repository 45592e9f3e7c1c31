"""How often somebody may try to sign in, counted in the cache that all processes share, before a password is hashed."""

from __future__ import annotations

import hashlib
import math
import time
import uuid

from allauth.core.internal import ratelimit
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from quartermaster_site import error_pages
from quartermaster_site.access.audit import actor_of, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.networks import group_of
from quartermaster_site.access.tally import Tally
from quartermaster_site.http import client_of_request
from quartermaster_site.log_lines import without_log_line

APP = "allauth.account"
ANYWHERE = "sign_in_anywhere"
"""The action whose limit counts a name from all addresses; the limits themselves are in the settings."""
_LONGEST_SECONDS = 15 * 60
_UNKNOWN_SECONDS = 60
_BUSY_SECONDS = 5
THROTTLED = Tally("sign-in")


def name_key(name: str) -> str:
    """One key for all spellings that the database takes for the same name, until failures are forgotten."""
    folded = hashlib.sha256(name.strip().upper().casefold().encode("utf-8", "replace")).hexdigest()
    return f"{folded}:{cache.get(_since(folded), '')}"


def key_here(request: HttpRequest, name: str) -> str:
    """The same for one address."""
    return f"{name_key(name)}:{group_of(client_of_request(request))}"


def forget_failures(name: str) -> None:
    """Failed sign-ins with this name no longer count (web.md 5.1), nor do those from this machine."""
    folded = name_key(name).partition(":")[0]
    cache.set(_since(folded), uuid.uuid4().hex, _LONGEST_SECONDS)
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = "127.0.0.1"
    ratelimit.clear(request, app=APP, action="login_failed", key="")


def wait_seconds(request: HttpRequest, name: str) -> int:
    """How long until the limits of a sign-in let the next attempt through; 0 where none is reached."""
    keys = {"login": "", "login_failed": key_here(request, name), ANYWHERE: name_key(name)}
    now = time.time()
    waits = [0.0]
    for action, key in keys.items():
        for rate in ratelimit.get_rates(app=APP, action=action):
            past = cache.get(ratelimit.get_cache_key(request, app=APP, action=action, rate=rate, key=key), [])
            if len(past) >= rate.amount:
                waits.append(past[-1] + rate.duration - now)
    return min(math.ceil(max(waits)), _LONGEST_SECONDS)


def too_many_attempts(request: HttpRequest) -> HttpResponse:
    """The page of a reached limit. The audit log hears of it once a minute and address at most."""
    is_sign_in = request.path == "/login/"
    name = request.POST.get("login", "") if is_sign_in else ""
    wait = (wait_seconds(request, name) or _BUSY_SECONDS) if is_sign_in else _UNKNOWN_SECONDS
    response = error_pages.too_many_requests(request, wait)
    number = THROTTLED.count(group_of(client_of_request(request))) if response.status_code == 429 else 0
    if number:
        record(
            actor_of(request),
            "sign-in",
            label=name[:40],
            changes={"throttled": [None, number]},
            result=AuditEntry.Result.REFUSED,
            reason="throttled: too many attempts from this address, or with this name",
        )
    return without_log_line(response)


def _since(folded: str) -> str:
    return f"sign-ins-since:{folded}"
