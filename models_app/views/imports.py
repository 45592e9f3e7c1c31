"""Import: bring a file in, see what it would do, take over what is ticked, take that back."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app.import_form import SourceForm, choice_of
from models_app.models import ImportBatch
from models_app.pages.import_outcome import outcome_view
from models_app.pages.import_page import import_view
from models_app.pages.shell import remember_host, shell_of
from models_app.selectors.comparing import publishing_of
from models_app.selectors.sight import IN_PARTS
from models_app.services.import_applying import start_apply
from models_app.services.import_fetching import start_fetch
from models_app.services.import_sight import ImportSight
from models_app.services.import_undoing import changed_since, undo_import
from models_app.services.importing import start_import
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import NotFound, Refused
from quartermaster_site.http import STOP_POLLING, Request, go_to, page, wants_fragment
from quartermaster_site.jobs.models import Job

MOST_LISTED = 50
WORKING = (ImportBatch.State.READING, ImportBatch.State.APPLYING)


@require_safe
@needs(Level.VIEW)
def import_home(request: Request) -> HttpResponse:
    """The imports of the host looked at last."""
    host = shell_of(request).host
    require(request.user, Level.EDIT, host)
    if host is None:
        return go_to(request, reverse("models:host-list"))
    return _list_page(request, host, SourceForm(initial={"path": request.GET.get("path", "")}))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def import_list(request: Request, slug: str) -> HttpResponse:
    """Earlier imports, and the form for another file. POST brings one in."""
    host = host_for(request.user, slug, Level.EDIT)
    remember_host(request, host)
    if request.method != "POST":
        form = SourceForm(initial={"path": request.GET.get("path", "")})
        return _list_page(request, host, form)
    form = SourceForm(request.POST, request.FILES)
    try:
        if form.is_valid():
            return go_to(request, _started(request, host, form))
    except Refused as error:
        form.add_error(None, str(error))
    return _list_page(request, host, form, status=422)


def _started(request: Request, host: Host, form: SourceForm) -> str:
    """Where to go after a file was brought in, or the host was asked for it."""
    actor, upload = actor_of(request), form.cleaned_data["file"]
    if upload is None:
        path = form.cleaned_data["path"]
        job = start_fetch(host=host, path=path, actor=actor, **form.source).job
        return reverse("models:import-fetch", args=[host.slug, job.pk])
    batch = start_import(host=host, name=upload.name, data=upload.read(), actor=actor, **form.source)
    return reverse("models:import-show", args=[batch.pk])


def _list_page(request: Request, host: Host, form: SourceForm, status: int = 200) -> HttpResponse:
    context = {
        "host": host,
        "form": form,
        "back": reverse("models:import-list", args=[host.slug]),
        "batches": list(ImportBatch.objects.filter(host=host).defer("report", "applied", "text")[:MOST_LISTED]),
        **_frame(request, host),
    }
    return page(request, "imports/import_list.html", context, status=status)


def _frame(request: Request, host: Host) -> dict[str, Any]:
    return {
        "publishing": publishing_of(host),
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": True,
        "may_manage": may(request.user, Level.MANAGE),
    }


@require_safe
@needs(Level.MANAGE)
def import_fetch(request: Request, slug: str, job: int) -> HttpResponse:
    """Waits until the host has read the file, then leads to its report."""
    host = host_for(request.user, slug)
    asked = get_object_or_404(Job, pk=job, kind="import_fetch", host=host)
    if number := asked.result.get("import") if asked.is_finished and asked.result else None:
        return go_to(request, reverse("models:import-show", args=[number]))
    problem = asked.result.get("problem", "") if asked.result else ""
    context = {"host": host, "job": asked, "problem": problem or asked.error, "waiting": not asked.is_finished}
    status = STOP_POLLING if wants_fragment(request) and asked.is_finished else 200
    return page(request, "imports/import_fetch.html", context, fragments=["fetching"], status=status)


@require_safe
@needs(Level.VIEW)
def import_show(request: Request, pk: int) -> HttpResponse:
    return _show(request, _batch(request, pk))


def _batch(request: Request, pk: int) -> ImportBatch:
    """An import of a host that the person may edit."""
    found = ImportBatch.objects.select_related("host", "job", "by").filter(pk=pk).first()
    if found is None or not may(request.user, Level.VIEW, found.host):
        raise NotFound("There is no such import.")
    require(request.user, Level.EDIT, found.host)
    return found


def _show(request: Request, batch: ImportBatch, *, problem: str = "", status: int = 200) -> HttpResponse:
    remember_host(request, batch.host)
    working = batch.state in WORKING
    lost = working and batch.job is not None and batch.job.is_finished
    is_read, sight = batch.state == ImportBatch.State.READ, ImportSight(request.user, batch)
    problem = problem or batch.problem
    context = {
        "batch": batch,
        "host": batch.host,
        "working": working and not lost,
        "lost": lost,
        "view": import_view(batch, sight, request.GET.get("show", "")) if is_read else None,
        "outcome": outcome_view(batch, sight) if batch.state in ("applied", "undone") else None,
        "problem": IN_PARTS if sight.hides_text(problem) else problem,
        "is_read": is_read,
        **_frame(request, batch.host),
    }
    if wants_fragment(request) and not context["working"]:
        return go_to(request, reverse("models:import-show", args=[batch.pk]))
    return page(request, "imports/import_show.html", context, fragments=["import-body"], status=status)


@require_POST
@needs(Level.VIEW)
def import_apply(request: Request, pk: int) -> HttpResponse:
    """Take over what is ticked."""
    batch = _batch(request, pk)
    try:
        choice = choice_of(request.POST, batch.report.get("models", {}))
        start_apply(batch=batch, choice=choice, actor=actor_of(request))
    except Refused as error:
        return _show(request, batch, problem=str(error), status=422)
    return go_to(request, reverse("models:import-show", args=[pk]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def import_undo(request: Request, pk: int) -> HttpResponse:
    """Asks first: GET is the question, POST the answer."""
    batch = _batch(request, pk)
    problem, status = "", 200
    if request.method == "POST":
        try:
            undo_import(batch=batch, actor=actor_of(request))
        except Refused as error:
            problem, status = str(error), 422
        else:
            messages.success(request, f"{batch.name} is taken back; the models are planned again.")
            return go_to(request, reverse("models:import-show", args=[pk]))
    sight = ImportSight(request.user, batch)
    changed = changed_since(batch) if batch.state == ImportBatch.State.APPLIED else []
    context = {
        "batch": batch,
        "host": batch.host,
        "count": len(sight.seen_targets()),
        "changed": [name for name in changed if not sight.hides_text(name)] or (changed and [IN_PARTS]),
        "problem": IN_PARTS if sight.hides_text(problem) else problem,
    }
    return page(request, "imports/import_undo.html", context, status=status)
