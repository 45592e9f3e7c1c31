"""A plan against llama.cpp: asking for a check, its state, its result. All of it works without JavaScript."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from models_app import selectors, services
from models_app.models import Row
from models_app.pages.check_section import CheckSection, check_section
from models_app.selectors.checks import plan_checks
from models_app.services import Preview
from models_app.services.checks import look_for_programs, start_check
from models_app.whatif_form import Limits, WhatIfForm
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import Refused, Unavailable
from quartermaster_site.http import STOP_POLLING, Request, go_to, page, wants_fragment


def check_of(request: Request, row: Row, preview: Preview, query: str = "") -> CheckSection | None:
    """The section of one plan; `query` holds the what-if values of its address."""
    checks = plan_checks(row, preview.base)
    if checks is None:
        return None
    asked, user = f"?{query}" if query else "", request.user
    return check_section(
        checks,
        url=reverse("models:model-check", args=[row.pk]) + asked,
        plan_url=reverse("models:model-show", args=[row.pk]) + asked,
        look_url=reverse("models:checker-look", args=[row.pk]) + asked,
        settings_url=reverse("models:host-checks", args=[row.host.slug]) if may(user, Level.VIEW, row.host) else "",
        may_operate=may(user, Level.OPERATE, row),
        may_look=may(user, Level.OPERATE, row.host),
        host=row.host,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def model_check(request: Request, pk: int) -> HttpResponse:
    """GET is the section for htmx, POST starts a check of the plan with the values of the address."""
    row = selectors.get_row(pk, request.user)
    form, preview = _planned(request, row)
    if request.method == "POST":
        require(request.user, Level.OPERATE, row)
        override = preview.override if form.query() else None
        started = start_check(row=row, override=override, actor=actor_of(request))
        if not started.created:
            messages.info(request, "A check of this model is under way already.")
    return _answer(request, row, preview, form.query())


@require_POST
@needs(Level.VIEW)
def checker_look(request: Request, pk: int) -> HttpResponse:
    """Have the host look for llama-fit-params again."""
    row = selectors.get_row(pk, request.user, Level.OPERATE)
    form, preview = _planned(request, row)
    server = preview.base.argv[0] if preview.base.argv else ""
    if look_for_programs(host=row.host, server=server, actor=actor_of(request)) is None:
        raise Unavailable("The queue does not take messages: the host cannot be asked.")
    return _answer(request, row, preview, form.query())


def _planned(request: Request, row: Row) -> tuple[WhatIfForm, Preview]:
    """The plan that the address names."""
    facts = services.host_facts(row.host, row.path)
    stored = services.preview_plan(row=row, facts=facts)
    if stored.header is None:
        raise Refused("The header of this model was not read: there is nothing to check.")
    form = WhatIfForm(request.GET, limits=Limits.of(stored.header), automatic={})
    if not form.is_valid():
        raise Refused("These values cannot be planned with.")
    if not form.query():
        return form, stored
    return form, services.preview_plan(row=row, override=form.override(stored.override), facts=facts)


def _answer(request: Request, row: Row, preview: Preview, query: str) -> HttpResponse:
    if not wants_fragment(request):
        return go_to(request, f"{reverse('models:model-show', args=[row.pk])}{f'?{query}' if query else ''}#check")
    section = check_of(request, row, preview, query)
    stops = request.method != "POST" and not (section and section.polls)
    context = {"check": section}
    return page(request, "components/_check.html", context, status=STOP_POLLING if stops else 200)
