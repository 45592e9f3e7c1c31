"""The network list at every request: who is refused, and which administrators are viewers where they are (web.md 9)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path

from quartermaster_site.access.allow_list import EMPTY, current
from quartermaster_site.access.audit import Actor, actor_of, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.networks import Standing, group_of, parse_address
from quartermaster_site.access.permissions import Level, may
from quartermaster_site.access.tally import Tally
from quartermaster_site.figures import counted
from quartermaster_site.http import client_address, client_of_request
from quartermaster_site.log_lines import without_log_line

GetResponse = Callable[[HttpRequest], HttpResponse]
log = logging.getLogger(__name__)
REFUSED = Tally("network")
ACTION = "network.refused"
SIGNED_IN_FROM = "signed_in_from"
"""In the session: the address of the sign-in."""
UNKNOWN = "an unknown address"
_WAY_OUT = "/logout/"


def network_gate(get_response: GetResponse) -> GetResponse:
    """Before anything is looked up: whoever is not on the list learns nothing, not even which pages there are."""

    def middleware(request: HttpRequest) -> HttpResponse:
        address = client_of_request(request)
        allowed = EMPTY if address is not None and address.is_loopback else current()
        request.allow_list, request.standing = allowed, allowed.standing(address)  # type: ignore[attr-defined]
        return refused(request) if allowed.standing(address) is Standing.NONE else get_response(request)

    return middleware


def network_rights(get_response: GetResponse) -> GetResponse:
    """Once it is known who asks: rows for administrators let nobody else in."""

    def middleware(request: HttpRequest) -> HttpResponse:
        asked = request.allow_list.rules and request.user.is_authenticated  # type: ignore[attr-defined]
        if asked and not request.path.startswith(_WAY_OUT) and not is_admitted(request, request.user):
            return refused(request)
        return get_response(request)

    return middleware


def is_admitted(request: HttpRequest, user: Any) -> bool:
    """Whether this person may do anything from where they are. Marks administrators who are viewers there.

    Where a session was opened counts as long as it lasts, beside where it is used.
    """
    standing: Standing = request.standing  # type: ignore[attr-defined]
    if not may(user, Level.MANAGE):
        return standing is not Standing.ADMINS
    at_fault = _sign_in_at_fault(request)
    if standing is Standing.AS_VIEWER:
        at_fault = client_address(request) or UNKNOWN
    user.restricted_to_viewer, request.restricted_at = bool(at_fault), at_fault  # type: ignore[attr-defined]
    return True


def _sign_in_at_fault(request: HttpRequest) -> str:
    """The address from which the session was opened, where that is none for administrators. Tokens open none."""
    found = request.session.get(SIGNED_IN_FROM) if request.user.is_authenticated else None
    if found is None:
        return ""
    standing: Standing = request.allow_list.standing(parse_address(found))  # type: ignore[attr-defined]
    return "" if standing in (Standing.FULL, Standing.ADMINS) else found or UNKNOWN


def refused(request: HttpRequest) -> HttpResponse:
    """403 and no word more; counted, and written down now and then."""
    address = client_of_request(request)
    if number := REFUSED.count(group_of(address)):
        path = escape_uri_path(request.path)[:200]
        log.warning("%s refused: not on the network list (%s, now %s)", address, counted(number, "request"), path)
        changes = {"requests": [None, number]}
        try:
            record(_actor(request), ACTION, changes=changes, result=AuditEntry.Result.REFUSED, reason=f"last: {path}")
        except DatabaseError:
            log.warning("this could not be noted in the audit log")
    answer = HttpResponse("Forbidden\n", status=403, content_type="text/plain", headers={"Cache-Control": "no-store"})
    return without_log_line(answer)


def _actor(request: HttpRequest) -> Actor:
    """Before the session is read nobody has a name."""
    if hasattr(request, "user"):
        return actor_of(request)
    return Actor(name="anonymous", address=client_address(request), request_id=getattr(request, "request_id", ""))
