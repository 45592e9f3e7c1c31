"""Two settings of a model side by side: the stored plan, or any what-if, each named by the address."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from models_app import selectors, services
from models_app.core.catalog import Header
from models_app.models import Row
from models_app.pages.compare_page import compare_query, sides_of, two_rows
from models_app.pages.comparison import Comparison, comparison
from models_app.pages.host_page import machine_of
from models_app.pages.model_head import model_head
from models_app.pages.plan_panel import plan_panel
from models_app.pages.whatif_page import automatic_values
from models_app.services import HostFacts, Preview
from models_app.whatif_form import Limits, WhatIfForm
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.http import Request, page

SIDES = ("a", "b")


@require_safe
@needs(Level.VIEW)
def model_compare(request: Request, pk: int) -> HttpResponse:
    """Side A against side B. A side without values is the plan as it is stored."""
    given = {key: str(value).strip() for key, value in request.GET.items()}
    if not all(given.values()):
        query = urlencode({key: value for key, value in given.items() if value})
        return redirect(f"{reverse('models:model-compare', args=[pk])}{'?' if query else ''}{query}")
    detail = selectors.model_detail(selectors.get_row(pk, request.user), request.user)
    facts = services.host_facts(detail.row.host, detail.row.path)
    stored = services.preview_plan(row=detail.row, facts=facts)
    header = stored.header
    head = model_head(detail, "models:model-show")
    if stored.base.placement is None or header is None:
        reason = (stored.base.skip_reason or detail.header_error).rstrip(".")
        return page(request, "models/model_compare.html", {"head": head, "nothing": True, "reason": reason})
    known = automatic_values(stored.base, facts.budget.target_bytes, header.block_count)
    forms = [WhatIfForm(given, limits=Limits.of(header), automatic=known, prefix=side) for side in SIDES]
    valid = all(form.is_valid() for form in forms)
    context = {
        "head": head,
        "forms": forms,
        "rows": two_rows(*forms),
        "sides": sides_of(pk, *forms),
        "swapped": compare_query(forms[1], forms[0]),
        "result": _compared(detail, stored, forms, facts, header) if valid else None,
    }
    return page(request, "models/model_compare.html", context, status=200 if valid else 422)


def _compared(
    detail: selectors.ModelDetail, stored: Preview, forms: list[WhatIfForm], facts: HostFacts, header: Header
) -> Comparison:
    a, b = (_planned(detail.row, stored, form, facts) for form in forms)
    plans = [detail.sight.plan(side.base) for side in (a, b)]
    machine = machine_of(a.budget if len(a.budget.device_bytes) >= len(b.budget.device_bytes) else b.budget, 0)
    panels = tuple(plan_panel(plan, machine, block_count=header.block_count) for plan in plans)
    return comparison(
        plans[0],
        plans[1],
        (panels[0], panels[1]),
        device_names=[device.name for device in machine.devices],
        block_count=header.block_count,
    )


def _planned(row: Row, stored: Preview, form: WhatIfForm, facts: HostFacts) -> Preview:
    if not form.typed():
        return stored
    return services.preview_plan(row=row, override=form.override(stored.override), facts=facts)
