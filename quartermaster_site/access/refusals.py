"""Attempts that the rights of a person refused, in the audit log (web.md 10): what was asked, by whom, how often.

An object that is hidden and one that is not there are answered alike, so both are recorded alike. A change that was
refused is an entry of its own; a flood of them, and pages that were only asked for, are counted and written down now
and then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path

from quartermaster_site.access.audit import actor_of, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.tally import Tally
from quartermaster_site.errors import Refused, Withheld
from quartermaster_site.rate import RateLimit

log = logging.getLogger(__name__)
CHANGE, READ = "access.refused", "access.not-shown"
CHANGES = RateLimit(per_second=0.5, burst=100)
"""Entries of their own, for each person."""
MANY = Tally("refusals")
_REFUSED = (403, 404)
_NOT_DONE = 422
"""Counts where a whole page says so: a form that asks for another value is no attempt."""
_READS = ("GET", "HEAD", "OPTIONS")
_MOST_PATH = 200


def refusals(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A middleware. Nobody's answer depends on whether the entry could be stored."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        why: str | None = getattr(request, "refusal", "")
        refused = response.status_code in _REFUSED and why is not None
        not_done = response.status_code == _NOT_DONE and why and not request.path.endswith("/preview/")
        if (refused or not_done) and request.user.is_authenticated:
            note(request, response.status_code, why or "")
        return response

    return middleware


def tell(request: HttpRequest, error: Refused, *, always: bool = False) -> None:
    """Have it recorded that a form was refused for the sake of others, though its page only asks for another value.

    `always`: whatever the reason, as for publishing.
    """
    if always or isinstance(error, Withheld):
        request.refusal = " ".join(error.fields.values())  # type: ignore[attr-defined]


def note(request: HttpRequest, status: int, why: str) -> None:
    """Record that a request was refused, or count it."""
    path = f"{request.method} {escape_uri_path(request.path)}"[:_MOST_PATH]
    is_change, who = request.method not in _READS, str(request.user.pk)
    changes = {}
    if not is_change or CHANGES.wait_seconds(who):
        number = MANY.count(f"{who} {is_change}")
        if not number:
            return
        changes = {"requests": [None, number]} if number > 1 else {}
    found = request.resolver_match
    slug = str(found.kwargs.get("slug", "")) if found else ""
    try:
        record(
            actor_of(request),
            CHANGE if is_change else READ,
            label=path,
            host_slug=slug[:40],
            changes=changes,
            result=AuditEntry.Result.REFUSED,
            reason=f"{status}: {why}" if why else str(status),
        )
    except DatabaseError:
        log.warning("a refused request could not be noted in the audit log")
