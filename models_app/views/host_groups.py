"""The groups of a host: which models swap together, in the order in which patterns are tried."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app.models import Dialect, Host
from gpus_app.selectors import host_for, section
from models_app import convert
from models_app.core.settings import settings_from_mapping
from models_app.editor_form import posted_version
from models_app.fleet_sections import FLEET_SECTIONS
from models_app.group_form import GroupLine, group_values, groups_text, posted_lines, stored_lines, with_blanks
from models_app.pages.memory_page import Conflict, ConflictLine
from models_app.pages.section_page import section_tabs
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.groups import group_members
from models_app.selectors.sight import IN_PARTS, require_whole
from models_app.services.sections import save_fleet_section
from models_app.views.host_section import APPLIED, UNCHANGED
from models_app.views.hosts import host_context
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page

SECTION = "groups"


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def host_groups(request: Request, slug: str) -> HttpResponse:
    """The groups as they are stored. A POST shows which models would fall where, or applies."""
    host = host_for(request.user, slug)
    stored = section(host, SECTION)
    if request.method != "POST":
        return _page(request, host, stored_lines(convert.core_settings(host).groups), stored.version)
    require(request.user, FLEET_SECTIONS[SECTION].level, host)
    require_whole(request.user, host)
    lines, version = posted_lines(request.POST), posted_version(request.POST)
    if any(line.error for line in lines):
        return _page(request, host, lines, version, status=422)
    if request.POST.get("intent") == "impact":
        return _page(request, host, lines, version, tried=True)
    try:
        saved = save_fleet_section(
            host=host, section=SECTION, values=group_values(lines), version=version, actor=actor_of(request)
        )
    except Refused as error:
        return _page(request, host, lines, version, problem=str(next(iter(error.fields.values()))), status=422)
    except EditConflict as error:
        theirs = stored_lines(settings_from_mapping(error.saved).groups)
        was = request.POST.get("was", "") or "-"
        line = ConflictLine("Groups", groups_text(lines) or "-", groups_text(theirs) or "-", was)
        conflict = Conflict(error.by, error.at, (line,))
        return _page(request, host, lines, error.version, conflict=conflict, status=409)
    messages.success(request, APPLIED if saved.version > stored.version else UNCHANGED)
    return go_to(request, reverse("models:host-groups", args=[slug]))


def _page(
    request: Request,
    host: Host,
    lines: Sequence[GroupLine],
    version: int,
    *,
    tried: bool = False,
    problem: str = "",
    conflict: Conflict | None = None,
    status: int = 200,
) -> HttpResponse:
    sound = not any(line.error for line in lines)
    specs = [line.spec for line in lines] if sound else list(convert.core_settings(host).groups)
    stored, sight = section(host, SECTION), EntrySight(request.user, host)
    context = host_context(request, host) | {
        "tabs": section_tabs(host, SECTION),
        "withheld": "" if sight.whole else IN_PARTS,
        "lines": list(enumerate(with_blanks(lines), 1)),
        "was": groups_text(stored_lines(convert.core_settings(host).groups)),
        "version": version,
        "members": list(group_members(host, specs, sight).items()),
        "named": {spec.name for spec in specs},
        "tried": tried,
        "problem": problem,
        "wrong": not sound,
        "conflict": conflict,
        "stored": stored,
        "listens": host.publish_dialect == Dialect.QUARTERMASTER,
        "may_change": may(request.user, FLEET_SECTIONS[SECTION].level, host),
    }
    return page(request, "hosts/host_groups.html", context, status=status)
