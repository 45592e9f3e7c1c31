"""A section of a host's settings: the form, what it would change, and applying it under a version."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app.models import Host, HostSetting
from gpus_app.selectors import host_for, section
from models_app import convert
from models_app.core.state.checks import Limits
from models_app.core.state.typed import read
from models_app.editor_form import EditorForm, posted_texts, posted_version, stored_texts
from models_app.fleet_sections import FLEET_SECTIONS, cleaned
from models_app.pages.editor_conflict import EditorConflict, editor_conflict
from models_app.pages.editor_page import Facts
from models_app.pages.impact_page import ImpactText, impact_text
from models_app.pages.section_page import router_note, section_controls, section_tabs
from models_app.section_form import default_values, flat_values, nested_values, section_fields
from models_app.services.impact import settings_impact
from models_app.services.sections import save_fleet_section
from models_app.views.hosts import host_context
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page

APPLIED = "Applied. The models of this host are planned again."
UNCHANGED = "This is what is stored already, so nothing was applied."


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def host_section(request: Request, slug: str, name: str) -> HttpResponse:
    """The form as it is stored. A POST shows what it would change, empties it, or applies it."""
    host = host_for(request.user, slug)
    stored = section(host, name)
    if request.method != "POST":
        return _page(request, host, stored, _form(name, stored))
    require(request.user, FLEET_SECTIONS[name].level, host)
    form = _form(name, stored, request.POST)
    if form.errors:
        return _page(request, host, stored, form, status=422)
    if request.POST.get("reset") or request.POST.get("reset-group"):
        return _page(request, host, stored, form)
    values = nested_values(name, form.values, stored.values)
    try:
        if request.POST.get("intent") == "impact":
            impact = impact_text(settings_impact(host, name, cleaned(name, values), request.user))
            return _page(request, host, stored, form, impact=impact)
        saved = save_fleet_section(
            host=host, section=name, values=values, version=form.version, actor=actor_of(request)
        )
    except Refused as error:
        return _page(request, host, stored, form.with_refusal(error.fields), status=422)
    except EditConflict as error:
        flat = flat_values(name, error.saved)
        seen = EditConflict(str(error), saved=flat, version=error.version, by=error.by, at=error.at)
        conflict = editor_conflict(form, seen, _original(request, form))
        return _page(request, host, stored, form.with_version(error.version), status=409, conflict=conflict)
    messages.success(request, APPLIED if saved.version > stored.version else UNCHANGED)
    return go_to(request, reverse(f"models:host-{name}", args=[slug]))


def _form(name: str, stored: HostSetting, posted: Mapping[str, str] | None = None) -> EditorForm:
    fields, values = section_fields(name), flat_values(name, stored.values)
    return EditorForm(
        fields=fields,
        limits=Limits(),
        stored=values,
        version=stored.version if posted is None else posted_version(posted),
        typed=stored_texts(fields, values) if posted is None else posted_texts(fields, posted, values),
    )


def _original(request: Request, form: EditorForm) -> Mapping[str, object]:
    """What the form showed when it was opened: it carries that along."""
    seen = {field.key: request.POST.get(f"was-{field.key}", "") for field in form.fields}
    return read(form.fields, seen, form.limits).values


def _page(
    request: Request,
    host: Host,
    stored: HostSetting,
    form: EditorForm,
    *,
    status: int = 200,
    conflict: EditorConflict | None = None,
    impact: ImpactText | None = None,
) -> HttpResponse:
    name = stored.section
    facts = Facts(settings=convert.core_settings(host), automatic=default_values(name))
    context = host_context(request, host) | {
        "name": name,
        "title": FLEET_SECTIONS[name].title,
        "tabs": section_tabs(host, name),
        "form": form,
        "controls": section_controls(form, facts, stored),
        "originals": stored_texts(form.fields, form.stored),
        "conflict": conflict,
        "impact": impact,
        "stored": stored,
        "note": router_note(host, name),
        "may_change": may(request.user, FLEET_SECTIONS[name].level, host),
        "for_admins": FLEET_SECTIONS[name].level >= Level.MANAGE,
        "preview_url": request.path,
    }
    return page(request, "hosts/host_section.html", context, status=status)
