"""The Network page: from which addresses the dashboard may be used. Administrators only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from quartermaster_site.access import allow_list
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.network_form import WHO, NetworkLine, posted_lines, stored_lines, with_blanks
from quartermaster_site.access.network_page import differences, here_of, refusals, tested, trusted_proxies, verdict
from quartermaster_site.access.networks import AllowList, parse_address
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import client_of_request, go_to, page
from quartermaster_site.number_fields import posted_version

_MOST_CORRECTIONS = 5


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def network(request: HttpRequest) -> HttpResponse:
    """The list with a tester (`?address=`); POST replaces the whole list."""
    if request.method != "POST":
        row = allow_list.stored()
        return _page(request, stored_lines(allow_list.rules_of(row)), row.version)
    lines, version = posted_lines(request.POST), posted_version(request.POST)
    if any(line.error for line in lines):
        return _page(request, lines, version, status=422)
    here = here_of(request)
    try:
        allow_list.save_list(
            rules=[line.rule for line in lines],
            version=version,
            here=client_of_request(request),
            # What is confirmed is being kept out of this address, not of another one.
            confirmed=request.POST.get("confirm", "") == here.address,
            actor=actor_of(request),
        )
    except Refused as error:
        question = error.fields.get(allow_list.CONFIRM, "")
        return _page(request, lines, version, question=question, problem="" if question else str(error), status=422)
    except EditConflict as error:
        return _page(request, lines, error.version, conflict=_conflict(request, lines, error), status=409)
    _say_what_was_stored(request, lines)
    return go_to(request, reverse("access:network"))


def _page(
    request: HttpRequest,
    lines: Sequence[NetworkLine],
    version: int,
    *,
    question: str = "",
    problem: str = "",
    conflict: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    row, here = allow_list.stored(), here_of(request)
    allowed, address = AllowList(allow_list.rules_of(row)), parse_address(here.address)
    typed = request.GET.get("address", "")
    context = {
        "lines": with_blanks(lines),
        "wrong": any(line.error for line in lines),
        "who": WHO,
        "version": version,
        "was": "\n".join(map(str, allowed.rules)),
        "question": question,
        "problem": problem,
        "conflict": conflict,
        "row": row,
        "allowed": allowed,
        "here": here,
        "standing": verdict(allowed, address) if address else None,
        "typed": typed[:100],
        "tested": tested(allowed, typed),
        "proxies": trusted_proxies(),
        "refusals": refusals(timezone.now()),
    }
    return page(request, "access/network.html", context, status=status)


def _conflict(request: HttpRequest, lines: Sequence[NetworkLine], error: EditConflict) -> dict[str, Any]:
    yours = [str(line.rule) for line in lines]
    saved = [str(rule) for rule in allow_list.rules_from(error.saved["rules"])]
    original = request.POST.get("was", "").splitlines()
    return {"by": error.by, "at": error.at, "lines": differences(yours, saved, original)}


def _say_what_was_stored(request: HttpRequest, lines: Sequence[NetworkLine]) -> None:
    """Host bits, zones and mapped addresses are corrected with a notice."""
    corrections = [line.correction for line in lines if line.correction]
    for text in corrections[:_MOST_CORRECTIONS]:
        messages.warning(request, f"{text}.")
    if len(corrections) > _MOST_CORRECTIONS:
        messages.warning(request, f"{len(corrections) - _MOST_CORRECTIONS} more rows are stored in short like that.")
    messages.success(request, "The list counts from the next request on." if lines else "Every address passes now.")
