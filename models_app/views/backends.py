"""The executables that run the models of a host."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from gpus_app.models import Backend, Host
from gpus_app.selectors import host_for
from models_app.backend_form import BackendForm
from models_app.pages.backends_page import affected_by_removal, backend_lines, proposal_lines, use_lines
from models_app.selectors.backends import get_backend, host_backends
from models_app.services import backends as services
from models_app.services.backend_probes import start_backend_probe
from models_app.services.program_search import last_search, start_program_search
from models_app.views.hosts import host_context, host_of, started
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import STOP_POLLING, Request, go_to, page, wants_fragment

ASKED_AGAIN = "The models of this host are planned again."


def _home(host: Host) -> str:
    return reverse("models:backend-list", args=[host.slug])


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def backend_list(request: Request, slug: str) -> HttpResponse:
    """The registry; POST adds one."""
    host = host_of(request, slug)
    form = BackendForm(request.POST if request.method == "POST" else None, path=request.GET.get("path", ""))
    if request.method == "POST":
        require(request.user, Level.MANAGE)
        if form.is_valid() and add_backend(request, host, form):
            return go_to(request, _home(host))
    found, search = host_backends(host, request.user), last_search(host)
    context = host_context(request, host) | {
        "form": form,
        "uses": use_lines(found),
        "backends": backend_lines(found),
        "search": search,
        "proposals": proposal_lines(search.proposals),
    }
    status = STOP_POLLING if wants_fragment(request) and not search.is_running else 422 if form.errors else 200
    return page(request, "hosts/backend_list.html", context, fragments=["proposals"], status=status)


def add_backend(request: Request, host: Host, form: BackendForm) -> bool:
    """Store a valid form; False when it was refused, with the reason in the form."""
    try:
        row = services.add_backend(
            host=host, values=form.values(), slug=form.cleaned_data["slug"], actor=actor_of(request)
        )
    except Refused as error:
        form.take_refusal(error)
        return False
    messages.success(request, f"{row} is registered as {row.slug}. {ASKED_AGAIN}")
    return True


@require_POST
@needs(Level.MANAGE)
def backend_search(request: Request, slug: str) -> HttpResponse:
    """Have the host look for executables of known names; the list of backends shows what it finds."""
    host = host_for(request.user, slug)
    start_program_search(host=host, actor=actor_of(request))
    return go_to(request, _home(host))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def backend_edit(request: Request, slug: str, pk: int) -> HttpResponse:
    host = host_for(request.user, slug)
    row = get_backend(host, pk)
    posted = request.POST if request.method == "POST" else None
    form, status = BackendForm(posted, backend=row, path=request.GET.get("path", "")), 200
    if request.method == "POST":
        status = _save(request, form, row) if form.is_valid() else 422
        if status == 200:
            messages.success(request, f"Saved. {ASKED_AGAIN}")
            return go_to(request, _home(host))
    context = {"host": host, "backend": row, "form": form, "home": _home(host)}
    return page(request, "hosts/backend_edit.html", context, status=status)


def _save(request: Request, form: BackendForm, row: Backend) -> int:
    try:
        services.save_backend(
            backend=row, values=form.values(), edition=form.cleaned_data["edition"] or 0, actor=actor_of(request)
        )
    except Refused as error:
        form.take_refusal(error)
        return 422
    except EditConflict as error:
        form.take_conflict(error)
        return 409
    return 200


@require_POST
@needs(Level.MANAGE)
def backend_star(request: Request, slug: str, pk: int) -> HttpResponse:
    host = host_for(request.user, slug)
    row = get_backend(host, pk)
    services.star_backend(backend=row, starred=not request.POST.get("off"), actor=actor_of(request))
    messages.success(request, f"Applied. {ASKED_AGAIN}")
    return go_to(request, _home(host))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def backend_remove(request: Request, slug: str, pk: int) -> HttpResponse:
    """Asks first: GET is the question with what it affects, POST the answer."""
    host = host_for(request.user, slug)
    row = get_backend(host, pk)
    if request.method == "POST":
        services.remove_backend(backend=row, actor=actor_of(request))
        messages.success(request, f"{row} is no longer registered. {ASKED_AGAIN}")
        return go_to(request, _home(host))
    affected = affected_by_removal(host_backends(host, request.user), row)
    context = {"host": host, "backend": row, "affected": affected, "home": _home(host)}
    return page(request, "hosts/backend_remove.html", context)


@require_POST
@needs(Level.MANAGE)
def backend_probe(request: Request, slug: str) -> HttpResponse:
    """Ask one executable what it is, or all of the host."""
    host = host_for(request.user, slug)
    rows = [get_backend(host, int(pk))] if (pk := request.POST.get("backend", "")).isdecimal() else host.backends.all()
    if not rows:
        raise Refused("There is no backend to test yet.")
    return started(request, start_backend_probe(host=host, backends=rows, fresh=True, actor=actor_of(request)))
