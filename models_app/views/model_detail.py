"""A model's page: the plan with its what-if form, and the preview that stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from models_app import convert, selectors, services
from models_app.core.catalog import Header
from models_app.core.export.entry import plan_env
from models_app.models import Row
from models_app.pages.compare_page import compare_query
from models_app.pages.context_curve import curve_section
from models_app.pages.host_page import machine_of
from models_app.pages.model_head import model_head, model_notes
from models_app.pages.plan_panel import PlanPanel, plan_panel
from models_app.pages.whatif_page import automatic_values, field_groups
from models_app.selectors.sight import HostSight
from models_app.services import HostFacts, Preview
from models_app.views.model_check import check_of
from models_app.whatif_form import PLAIN_KEYS, Limits, WhatIfForm
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.errors import Busy, Refused
from quartermaster_site.http import Request, go_to, page, wants_fragment
from quartermaster_site.rate import RateLimit

PREVIEWS = RateLimit(per_second=5, burst=20)
"""web.md 3.9: per session."""


@require_safe
@needs(Level.VIEW)
def model_show(request: Request, pk: int) -> HttpResponse:
    """The plan as it is, or with the what-if values of the address."""
    return _whole_page(request, pk, request.GET if request.GET else None)


def _whole_page(request: Request, pk: int, values: Mapping[str, Any] | None) -> HttpResponse:
    detail = selectors.model_detail(selectors.get_row(pk, request.user), request.user)
    facts = services.host_facts(detail.row.host)
    automatic = services.preview_plan(row=detail.row, facts=facts)
    context: dict[str, object] = {
        "head": model_head(detail, "models:model-show"),
        "notes": model_notes(detail),
        "whole_page": True,
        "may_edit": may(request.user, Level.EDIT, detail.row),
        "version": detail.override.version if detail.override else 0,
    }
    if automatic.base.placement is None or automatic.header is None:
        return page(
            request, "models/model_detail.html", context | {"panel": _panel(detail.row, automatic, detail.sight)}
        )
    known = automatic_values(automatic.base, facts.budget.target_bytes, automatic.header.block_count)
    form = WhatIfForm(values, limits=Limits.of(automatic.header), automatic=known)
    valid = form.is_bound and form.is_valid()
    tried = _try(detail.row, form, facts) if valid else automatic
    context |= {
        "form": form,
        "groups": field_groups(
            form,
            stored=automatic.override,
            settings=facts.settings,
            automatic=known,
            fits=automatic.base.verdict != "over",
        ),
        "panel": _panel(detail.row, tried, detail.sight),
        "check": check_of(request, detail.row, tried, form.query() if valid else ""),
    }
    return page(request, "models/model_detail.html", context, status=422 if form.is_bound and not valid else 200)


def _try(row: Row, form: WhatIfForm, facts: HostFacts) -> Preview:
    """The plans under what a valid form says, laid over what is stored."""
    override = form.override(services.stored_override(facts, row))
    return services.preview_plan(row=row, override=override, facts=facts)


def _panel(row: Row, preview: Preview, sight: HostSight) -> PlanPanel:
    blocks = preview.header.block_count if preview.header else 0
    machine = machine_of(preview.budget, row.host.ram_total_bytes)
    curve = curve_section(preview.curve(preview.base.profile_id))
    return plan_panel(
        sight.plan(preview.base),
        machine,
        block_count=blocks,
        curve=curve,
        environment=plan_env(preview.base, preview.budget),
        guarded=preview.base.profile_id in preview.guarded,
    )


@require_POST
@needs(Level.VIEW)
def model_preview(request: Request, pk: int) -> HttpResponse:
    """What the typed values would give. htmx gets the panel; a plain form is sent to the address of its values."""
    wait = PREVIEWS.wait_seconds(request.session.session_key or request.user.get_username())
    if wait:
        raise Busy("Too many previews at once.", wait_seconds=max(1, round(wait)))
    values = _picked(request.POST)
    row = selectors.get_row(pk, request.user)
    form = WhatIfForm(values, limits=Limits.of(_header(row)), automatic={})
    if not wants_fragment(request):
        return _plain_preview(request, pk, form)
    if form.is_valid():
        facts = services.host_facts(row.host)
        preview = _try(row, form, facts)
        groups = field_groups(form, stored=services.stored_override(facts, row), settings=facts.settings)
        context = {
            "form": form,
            "groups": groups,
            "panel": _panel(row, preview, HostSight(request.user, row.host_id)),
            "check": check_of(request, row, preview, form.query()),
        }
        response = page(request, "models/model_detail.html#preview", context)
    else:
        response = page(request, "models/model_detail.html#refused", {"form": form}, status=422)
        response["HX-Reswap"] = "none"
    sequence = values.get("seq", "")
    response["X-Sequence"] = sequence if sequence.isascii() and sequence.isdigit() and len(sequence) < 16 else "0"
    return response


def _header(row: Row) -> Header:
    header = convert.header_lookup(row.host, [row.path])(row.path)
    if header is None:
        raise Refused("The header of this model was not read: there is nothing to plan with.")
    return header


def _picked(posted: Mapping[str, str]) -> dict[str, str]:
    """The posted values; a pick sets its field, a reset empties it."""
    values = {key: str(value) for key, value in posted.items()}
    name, _, value = values.get("pick", "").partition("=")
    if name in PLAIN_KEYS:
        values[name] = value
    if values.get("reset"):
        values[values["reset"]] = ""
    return values


def _plain_preview(request: Request, pk: int, form: WhatIfForm) -> HttpResponse:
    """Without JavaScript: to the address of these values, or back to the form with its messages."""
    if not form.is_valid():
        return _whole_page(request, pk, form.data)
    if form.data.get("intent") == "compare":
        against = compare_query(None, form)
        return go_to(request, f"{reverse('models:model-compare', args=[pk])}{'?' if against else ''}{against}")
    query = form.query()
    return go_to(request, f"{reverse('models:model-show', args=[pk])}{'?' if query else ''}{query}#plan")
