"""A router file that somebody else changed: what differs, and the ways out."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app.pages.diff_text import texts_view
from models_app.pages.difference import difference_view
from models_app.pages.drift_page import drift_view
from models_app.pages.shell import remember_host
from models_app.selectors.comparing import publishing_of
from models_app.selectors.drift import Drifted, compare_with_disk, disk_versions, drift_of, get_disk_version
from models_app.selectors.entry_sight import EntrySight, seen_part
from models_app.selectors.sight import IN_PARTS, require_whole
from models_app.services.drift import storable_text
from models_app.services.drift_choices import keep_ours, manage_by_hand, remind_later, resume, take_theirs
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.access.refusals import tell
from quartermaster_site.errors import Refused
from quartermaster_site.http import Request, go_to, page


@require_safe
@needs(Level.VIEW)
def config_drift(request: Request, slug: str) -> HttpResponse:
    """What lies on the host against what was written there."""
    host = host_for(request.user, slug)
    remember_host(request, host)
    return _drift_page(request, host)


@require_safe
@needs(Level.VIEW)
def config_drift_text(request: Request, slug: str, pk: int) -> HttpResponse:
    """A text that somebody else put there, without secrets, as a file."""
    host = host_for(request.user, slug)
    version = get_disk_version(host, pk)
    require_whole(request.user, host)
    response = HttpResponse(version.text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="found-{version.found_at:%Y-%m-%d-%H%M%S}.txt"'
    return response


@require_POST
@needs(Level.VIEW)
def config_drift_choose(request: Request, slug: str) -> HttpResponse:
    """One decision. `finding` names the drift that the person saw."""
    host, actor = host_for(request.user, slug, Level.OPERATE), actor_of(request)
    finding, choice = request.POST.get("finding", ""), request.POST.get("choice", "")
    try:
        match choice:
            case "keep":
                started = keep_ours(host=host, finding=finding, actor=actor)
                return go_to(request, reverse("jobs:job-show", args=[started.job.pk]))
            case "take":
                batch = take_theirs(host=host, finding=finding, actor=actor)
                return go_to(request, reverse("models:import-show", args=[batch.pk]))
            case "hand":
                manage_by_hand(host=host, actor=actor)
                messages.success(request, f"Nothing is written to {host} until somebody resumes.")
            case "resume":
                resume(host=host, actor=actor)
            case "later":
                remind_later(host=host, finding=finding, actor=actor)
                messages.success(request, "Said again when the file changes. Until it is decided nothing is written.")
            case _:
                raise Refused("Choose one of the ways.")
    except Refused as error:
        tell(request, error, always=True)
        return _drift_page(request, host_for(request.user, slug, Level.OPERATE), problem=str(error), status=422)
    return go_to(request, reverse("models:config-drift", args=[slug]))


def _drift_page(request: Request, host: Host, *, problem: str = "", status: int = 200) -> HttpResponse:
    drifted, sight = drift_of(host), EntrySight(request.user, host)
    context: dict[str, Any] = {
        "host": host,
        "publishing": publishing_of(host),
        "watch": drifted.watch,
        "versions": disk_versions(host),
        "drift": drift_view(host, drifted),
        "problem": problem,
        "whole": sight.whole,
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
    }
    if drifted.found_text and drifted.live:
        context |= _difference(request, drifted, sight)
    return page(request, "config/config_drift.html", context, fragments=["drift-state"], status=status)


def _difference(request: Request, drifted: Drifted, sight: EntrySight) -> dict[str, Any]:
    """As `config/_difference.html` shows it. A text that its router could not read is compared as text alone."""
    assert drifted.live is not None
    ours = storable_text(drifted.live.host, drifted.live.text)
    comparison = compare_with_disk(drifted, ours)
    as_text = comparison is None or request.GET.get("tab") == "text"
    asked = {} if request.method == "POST" else request.GET.dict()
    return {
        "differs": True,
        "view": difference_view(seen_part(comparison, sight), asked) if comparison else None,
        "text": texts_view(ours, drifted.found_text) if as_text and sight.whole else None,
        "withheld": IN_PARTS if as_text and not sight.whole else "",
        "unreadable": comparison is None,
    }
