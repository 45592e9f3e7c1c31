"""Variants that all chat models of a host share: the list, the form of one, what a change would do."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app import convert
from models_app.core.discovery.names import slugify
from models_app.core.fields.groups import variant_fields
from models_app.core.launch.findings import TextFinding
from models_app.core.planning.drafters import ALL_CHAINS
from models_app.core.settings import Override
from models_app.core.state.checks import Limits
from models_app.core.state.variants import VISION
from models_app.editor_form import EditorForm, posted_texts, posted_version, stored_texts
from models_app.pages.editor_conflict import EditorConflict, editor_conflict
from models_app.pages.editor_page import Facts, control_groups
from models_app.services import fleet_variants as fleet
from models_app.services import host_facts
from models_app.services.remarks import note_confirmed, remarks_on, unconfirmed
from models_app.views.hosts import host_context
from models_app.views.model_edit import SAVED, UNCHANGED, check_rate, tried_page, with_own_files
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, may_write_arguments, needs, require
from quartermaster_site.access.refusals import tell
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page, wants_fragment


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def fleet_list(request: Request, slug: str) -> HttpResponse:
    """All shared variants of a host; a POST adds one."""
    host = host_for(request.user, slug)
    name, problem = "", ""
    if request.method == "POST":
        require(request.user, Level.EDIT, host)
        name = request.POST.get("name", "").strip()
        try:
            fleet.add_fleet_variant(host=host, name=name, actor=actor_of(request))
        except Refused as error:
            problem = error.fields.get("name", str(error))
        else:
            messages.success(request, f"The shared variant {name} is added. Set here what is different about it.")
            return go_to(request, reverse("models:fleet-edit", args=[slug, name]))
    reach = fleet.fleet_reach(host, request.user)
    items = convert.core_settings(host).default_variants
    context = host_context(request, host) | {
        "items": [(item.name, len(convert.variant_fields(item)), reach(item.name)) for item in items],
        "name": name,
        "problem": problem,
        "may_edit": may(request.user, Level.EDIT, host),
    }
    return page(request, "hosts/fleet_list.html", context, status=422 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def fleet_edit(request: Request, slug: str, name: str) -> HttpResponse:
    """The form of one shared variant. `intent=impact` shows what saving would do, otherwise a POST saves."""
    host = host_for(request.user, slug)
    if request.method != "POST":
        return _page(request, host, name, _form(request, host, name))
    form = _form(request, host, name, request.POST)
    if wants_fragment(request):
        return _tried(request, host, name, form)
    if form.errors:
        return _page(request, host, name, form, status=422)
    if request.POST.get("intent") == "impact" or request.POST.get("reset") or request.POST.get("reset-group"):
        return _page(
            request, host, name, form, impact=fleet.fleet_impact(host, name, _values(host, name, form), request.user)
        )
    require(request.user, Level.EDIT, host)
    confirmed = request.POST.get("confirm", "")
    if "customArgs" in form.touched and (asked := unconfirmed(_remarks(host, form), confirmed)):
        return _page(request, host, name, form, status=422, asked=asked)
    try:
        changed = fleet.save_fleet_variant(
            host=host, name=name, values=_values(host, name, form), version=form.version, actor=actor_of(request)
        )
    except Refused as error:
        tell(request, error)
        return _page(request, host, name, form.with_refusal(error.fields), status=422)
    except EditConflict as error:
        known = form.version >= 0
        original = fleet.fleet_fields_at(host, name, error.saved, form.version) if known else None
        conflict = editor_conflict(form, error, original)
        return _page(request, host, name, form.with_version(error.version), status=409, conflict=conflict)
    if confirmed:
        section = fleet.fleet_section(host)
        note_confirmed(host=host, subject=section, label=name, confirmed=confirmed, actor=actor_of(request))
    messages.success(request, SAVED if changed else UNCHANGED)
    return go_to(request, reverse("models:fleet-edit", args=[slug, name]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def fleet_delete(request: Request, slug: str, name: str) -> HttpResponse:
    """Asks first: GET is the question, POST the answer."""
    host = host_for(request.user, slug, Level.EDIT)
    if request.method == "POST":
        version = posted_version(request.POST)
        fleet.delete_fleet_variant(host=host, name=name, version=version, actor=actor_of(request))
        messages.success(request, f"The shared variant {name} is deleted. The history can bring it back.")
        return go_to(request, reverse("models:fleet-list", args=[slug]))
    section = fleet.fleet_section(host)
    fields = fleet.fleet_fields(section, name)
    context = {
        "host": host,
        "name": name,
        "reach": fleet.fleet_reach(host, request.user)(name),
        "suffix": slugify(name),
        "version": section.version,
        "set_count": len(fields),
    }
    return page(request, "hosts/fleet_delete.html", context)


def _tried(request: Request, host: Host, name: str, form: EditorForm) -> HttpResponse:
    """While somebody types: what the form would change, and the slots beside the fields."""
    check_rate(request)
    facts = Facts(settings=convert.core_settings(host), source=f"variant {name}", unset="each model", chains=ALL_CHAINS)
    context: dict[str, object] = {"form": form, "groups": control_groups(form, facts)}
    if not form.errors:
        context |= {
            "reach": fleet.fleet_reach(host, request.user)(name),
            "impact": fleet.fleet_impact(host, name, _values(host, name, form), request.user),
        }
    return tried_page(request, "hosts/fleet_edit.html", form, context)


def _form(request: Request, host: Host, name: str, posted: Mapping[str, str] | None = None) -> EditorForm:
    section = fleet.fleet_section(host)
    fields = variant_fields(
        "llm", "llama", vision=name.lower() == VISION, arguments=may_write_arguments(request.user, host)
    )
    stored = fleet.fleet_fields(section, name)
    form = EditorForm(
        fields=fields,
        limits=Limits(device_count=host.devices.count()),
        stored=stored,
        version=section.version if posted is None else posted_version(posted),
        typed=stored_texts(fields, stored) if posted is None else posted_texts(fields, posted, stored, on_variant=True),
        on_variant=True,
    )
    return with_own_files(request, host, stored, form)


def _remarks(host: Host, form: EditorForm) -> tuple[TextFinding, ...]:
    """About the launch text, for the backend that runs chat models here."""
    text = str(form.reading.values.get("customArgs") or "")
    if not text.strip():
        return ()
    return remarks_on(host, text, "llama", flags=host_facts(host).backend_for(Override()).flags)


def _values(host: Host, name: str, form: EditorForm) -> dict[str, object]:
    """All values to store: fields that the form does not show to this person stay."""
    stored = fleet.fleet_fields(fleet.fleet_section(host), name)
    return {**stored, **form.values}


def _page(
    request: Request,
    host: Host,
    name: str,
    form: EditorForm,
    *,
    status: int = 200,
    conflict: EditorConflict | None = None,
    impact: fleet.Impact | None = None,
    asked: str = "",
) -> HttpResponse:
    facts = Facts(settings=convert.core_settings(host), source=f"variant {name}", unset="each model", chains=ALL_CHAINS)
    context = host_context(request, host) | {
        "name": name,
        "suffix": slugify(name),
        "form": form,
        "groups": control_groups(form, facts),
        "reach": fleet.fleet_reach(host, request.user)(name),
        "conflict": conflict,
        "impact": impact,
        "asked": asked,
        "findings": _remarks(host, form),
        "may_edit": may(request.user, Level.EDIT, host),
        "preview_url": request.path,
    }
    return page(request, "hosts/fleet_edit.html", context, status=status)
