"""One change for many models: choose settings, see what it does to each model, apply it."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from models_app.bulk_form import EVERYTHING, LINES, BulkForm, bulk_fields, posted_bulk
from models_app.models import Row
from models_app.pages.bulk_page import bulk_lines, bulk_summary
from models_app.selectors import ModelFilter
from models_app.selectors.bulk import chosen_rows, shown_rows
from models_app.services import bulk
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.grants import grants_of
from quartermaster_site.access.permissions import Level, needs, require
from quartermaster_site.http import Request, page


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def model_bulk(request: Request) -> HttpResponse:
    """GET shows the chosen models, a POST previews a change of them or applies it. It is for those who may edit any."""
    if not grants_of(request.user).reaches(Level.EDIT):
        require(request.user, Level.EDIT)
    if request.method != "POST":
        rows = _asked_for(request)
        return _page(request, rows, BulkForm({row.pk: 0 for row in rows}))
    form = posted_bulk(request.POST)
    rows = chosen_rows(form.versions, bulk.MOST_ROWS, request.user)
    if form.problem:
        return _page(request, rows, form, status=422)
    if request.POST.get("intent") == "apply":
        outcomes = bulk.apply_change(rows, form.typed, versions=form.versions, actor=actor_of(request))
        return _page(request, rows, form, outcomes, done=True)
    return _page(request, rows, form, bulk.preview_change(rows, form.typed, user=request.user))


def _asked_for(request: Request) -> list[Row]:
    if request.GET.get("all"):
        return shown_rows(ModelFilter.from_query(request.GET), bulk.MOST_ROWS, request.user)
    ticked = request.GET.getlist("row")[: bulk.MOST_ROWS]
    return chosen_rows(
        [int(text) for text in ticked if text.isascii() and text.isdigit() and len(text) < 10],
        len(ticked),
        request.user,
    )


def _page(
    request: Request,
    rows: Sequence[Row],
    form: BulkForm,
    outcomes: Sequence[bulk.Outcome] = (),
    *,
    done: bool = False,
    status: int = 200,
) -> HttpResponse:
    if outcomes:
        form = BulkForm({item.row.pk: item.version for item in outcomes}, form.lines, form.problem, form.typed)
    context = {
        "rows": rows,
        "most": bulk.MOST_ROWS,
        "form": form,
        "lines": list(zip(LINES, form.lines, strict=True)),
        "groups": bulk_fields({row.model_class for row in rows}).items(),
        "everything": EVERYTHING,
        "outcomes": bulk_lines(outcomes, done=done),
        "summary": bulk_summary(outcomes, done=done) if outcomes else "",
        "done": done,
    }
    return page(request, "models/model_bulk.html", context, status=status)
