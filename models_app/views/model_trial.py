"""A test launch of a model: the button, how it goes, what it printed."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from models_app import selectors, services
from models_app.pages.model_head import model_head, model_notes
from models_app.pages.trial_page import planned_memory
from models_app.services.trials import last_trial, refusal, start_trial
from models_app.views.hosts import started
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.http import Request, page


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def model_trial(request: Request, pk: int) -> HttpResponse:
    """GET shows the last one, POST starts another and leads to its job."""
    row = selectors.get_row(pk, request.user)
    if request.method == "POST":
        require(request.user, Level.OPERATE, row)
        return started(request, start_trial(row=row, actor=actor_of(request)))
    detail = selectors.model_detail(row, request.user)
    plan = services.preview_plan(row=row).base
    job = last_trial(row)
    context = {
        "head": model_head(detail, "models:model-trial"),
        "host": row.host,
        "notes": model_notes(detail),
        "job": job,
        "error": detail.sight.text(job.error) if job else "",
        "printed": [detail.sight.text(str(line)) for line in job.result.get("lines", ())] if job else [],
        "planned": planned_memory(plan),
        "reason": refusal(plan),
        "may_operate": may(request.user, Level.OPERATE, row),
    }
    return page(request, "models/model_trial.html", context)
