"""The steps of the wizard that are about what runs the models, and about the router that starts it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse

from gpus_app import services as gpu_services
from gpus_app.models import Host
from models_app.backend_form import BackendForm
from models_app.pages.backends_page import backend_lines, proposal_lines
from models_app.pages.config_page import dialect_choices
from models_app.pages.setup_page import Step, frame, next_url
from models_app.selectors.backends import host_backends
from models_app.services.program_search import Search, last_search, start_program_search
from models_app.target_form import TargetForm
from models_app.views.backends import add_backend
from models_app.views.setup_host import setup_host
from quartermaster_site.access.audit import actor_of
from quartermaster_site.errors import EditConflict, QuartermasterError, Refused
from quartermaster_site.http import STOP_POLLING, Request, go_to, page, wants_fragment


def backends_step(request: Request, step: Step) -> HttpResponse:
    """What was found on the host, to be added or not; the host is asked by itself once."""
    host = setup_host(request)
    if "next" in request.POST:
        return go_to(request, next_url(step))
    if "search" in request.POST:
        start_program_search(host=host, actor=actor_of(request))
        return go_to(request, step.url)
    form = BackendForm(request.POST if request.method == "POST" else None, path=request.GET.get("path", ""))
    if request.method == "POST" and form.is_valid() and add_backend(request, host, form):
        return go_to(request, step.url)
    search = _searched(request, host)
    context = frame(step, has_administrator=True) | {
        "host": host,
        "form": form,
        "backends": backend_lines(host_backends(host, request.user)),
        "search": search,
        "proposals": proposal_lines(search.proposals),
    }
    status = STOP_POLLING if wants_fragment(request) and not search.is_running else 422 if form.errors else 200
    return page(request, "setup/backends.html", context, fragments=["proposals"], status=status)


def _searched(request: Request, host: Host) -> Search:
    """The last search; begins the first one."""
    search = last_search(host)
    if search.job is None and host.is_reachable:
        try:
            start_program_search(host=host, actor=actor_of(request))
        except QuartermasterError:  # without a queue the step can be done by hand
            return search
        return last_search(host)
    return search


def router_step(request: Request, step: Step) -> HttpResponse:
    host = setup_host(request)
    form, status = TargetForm(request.POST or None, path=request.GET.get("path", host.publish_path)), 200
    if request.method == "POST":
        status = _save_target(request, host, form)
        if status == 200:
            return go_to(request, next_url(step))
    context = frame(step, has_administrator=True) | {"host": host, "form": form, "dialects": dialect_choices(host)}
    return page(request, "setup/router.html", context, status=status)


def _save_target(request: Request, host: Host, form: TargetForm) -> int:
    """200 when the target is stored, else the status of the page that says why not."""
    if not form.is_valid():
        return 422
    try:
        gpu_services.save_target(host=host, **form.target(), seen=form.seen(), actor=actor_of(request))
    except Refused as error:
        form.take_refusal(error)
        return 422
    except EditConflict as error:
        form.add_error(None, str(error))
        return 409
    if form.cleaned_data["path"]:
        messages.success(request, f"The file will be {form.cleaned_data['path']}, once it is published.")
    return 200
