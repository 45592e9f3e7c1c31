"""The files of a model and the facts of its header."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from models_app import selectors, services
from models_app.models import Row
from models_app.pages.file_page import fact_rows, file_rows, read_note
from models_app.pages.model_head import model_head, model_notes
from models_app.pages.pairings import pairings, served
from models_app.pages.shell import shell_of
from models_app.selectors.components import seen_components
from models_app.views.hosts import started
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.http import Request, go_to, page

AWAY = (Row.State.MISSING, Row.State.OFFLINE)


@require_safe
@needs(Level.VIEW)
def model_files(request: Request, pk: int) -> HttpResponse:
    detail = selectors.model_detail(selectors.get_row(pk, request.user, for_plan=False), request.user)
    query = request.GET.get("q", "").strip()[:200]
    facts = fact_rows(detail.facts, query)
    host = next(host for host in shell_of(request).all_hosts if host.pk == detail.row.host_id)
    found = seen_components(host, detail.sight)
    model = next((item for item in found.models if item.pk == pk), None)
    context = {
        "head": model_head(detail, "models:model-files"),
        "host": host,
        "notes": model_notes(detail),
        "files": file_rows(detail),
        "pairings": pairings(found, model) if model else [],
        "served": served(found, model) if model else [],
        "missing": ", ".join(str(number) for number in detail.found.missing_shards),
        "warnings": detail.header.warnings if detail.header else (),
        "facts": facts,
        "query": query,
        "hidden_facts": len(detail.facts) - len(facts),
        "read_note": read_note(detail),
        "may_reread": may(request.user, Level.OPERATE, detail.row),
        "may_forget": detail.row.state in AWAY and may(request.user, Level.EDIT, detail.row),
    }
    return page(request, "models/model_files.html", context)


@require_POST
@needs(Level.VIEW)
def model_reread(request: Request, pk: int) -> HttpResponse:
    """Asks the host to read this row's files again, whatever is known of them."""
    row = selectors.get_row(pk, request.user, Level.OPERATE)
    return started(request, services.start_reread(row=row, actor=actor_of(request)))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def model_forget(request: Request, pk: int) -> HttpResponse:
    """Asks first: GET is the question, POST the answer. Only for what a scan did not find."""
    row = selectors.get_row(pk, request.user, Level.EDIT)
    if request.method == "POST":
        services.forget_row(row=row, actor=actor_of(request))
        messages.success(request, f"{row.served_id} is forgotten.")
        return go_to(request, reverse("models:model-list"))
    return page(request, "models/model_forget.html", {"row": row, "is_away": row.state in AWAY})
