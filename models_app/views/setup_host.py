"""The steps of the wizard that are about a host: its folders, its memory, the first scan, the end."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse

from gpus_app.forms import MemoryForm
from gpus_app.models import Host
from gpus_app.selectors import get_host, memory_settings
from gpus_app.services import start_probe
from models_app import selectors, services
from models_app.pages.host_page import budget_text, device_bar, device_rows, root_rows
from models_app.pages.memory_page import memory_rows, originals
from models_app.pages.setup_page import Step, findings_exist, found_text, frame, next_url
from models_app.pages.shell import shell_of
from models_app.root_form import RootForm
from models_app.views.host_settings import add_root, save_memory, say_added
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.services import finish_setup
from quartermaster_site.errors import NotFound, QuartermasterError
from quartermaster_site.http import STOP_POLLING, Request, go_to, page, wants_fragment
from quartermaster_site.jobs.models import UNFINISHED, Job
from quartermaster_site.jobs.pages import job_view
from quartermaster_site.jobs.sight import Everything


def setup_host(request: Request) -> Host:
    host = shell_of(request).host
    if host is None:
        raise NotFound("No host is registered yet. Start the worker, then reload this page.")
    return host


def folders_step(request: Request, step: Step) -> HttpResponse:
    host = setup_host(request)
    if request.method == "POST" and "next" in request.POST:
        return go_to(request, next_url(step))
    form = RootForm(request.POST or None, path=request.GET.get("path", ""))
    if request.method == "POST" and add_root(request, host, form):
        say_added(request, host, form, "is added; the first scan looks at it.")
        return go_to(request, step.url)
    roots = root_rows(list(selectors.roots(host)))
    context = frame(step, has_administrator=True) | {"host": host, "form": form, "roots": roots}
    return page(request, "setup/folders.html", context, status=422 if request.method == "POST" else 200)


def _probing(request: Request, host: Host) -> bool:
    """Whether the host is being asked for its devices; asks when nobody has yet."""
    waiting = Job.objects.filter(kind="probe_devices", host=host, state__in=UNFINISHED).exists()
    if host.probed_at is None and not waiting and host.is_reachable:
        try:
            start_probe(host=host, actor=actor_of(request))
        except QuartermasterError:
            return False
        return True
    return waiting


def memory_step(request: Request, step: Step) -> HttpResponse:
    host = get_host(setup_host(request).slug)
    form = MemoryForm(request.POST or None, memory=memory_settings(host))
    conflict, status = None, 200
    if request.method == "POST":
        if form.is_valid():
            conflict = save_memory(request, host, form)
        if form.is_valid() and conflict is None:
            return go_to(request, next_url(step))
        status = 409 if conflict else 422
    probing = _probing(request, host)
    host = get_host(host.slug)
    context = frame(step, has_administrator=True) | {
        "host": host,
        "form": form,
        "rows": memory_rows(form, memory_settings(host)),
        "originals": originals(memory_settings(host)),
        "conflict": conflict,
        "probing": probing,
        "devices": device_rows(host),
        "bar": device_bar(host),
        "budget": budget_text(host),
    }
    if wants_fragment(request) and not probing:
        status = STOP_POLLING
    return page(request, "setup/memory.html", context, fragments=["setup-devices"], status=status)


def scan_step(request: Request, step: Step) -> HttpResponse:
    host = setup_host(request)
    roots = list(selectors.roots(host))
    if request.method == "POST":
        if "next" in request.POST:
            return go_to(request, next_url(step))
        services.start_scan(host=host, actor=actor_of(request))
        return go_to(request, step.url)
    job = Job.objects.filter(kind="scan", host=host).select_related("host", "started_by").first()
    running = job is not None and not job.is_finished
    context = frame(step, has_administrator=True) | {
        "host": host,
        "roots": roots,
        "job": job,
        "running": running,
        "view": job_view(job, Everything(), may_cancel=False, may_retry=False) if job else None,
        "counts": found_text(host),
        "unscanned": [root.path for root in roots if root.last_scan_at is None],
        "has_findings": findings_exist(host),
    }
    status = STOP_POLLING if wants_fragment(request) and not running else 200
    return page(request, "setup/scan.html", context, fragments=["scan-count"], status=status)


def done_step(request: Request, step: Step) -> HttpResponse:
    host = setup_host(request)
    if request.method == "POST":
        finish_setup(actor=actor_of(request))
        if request.POST.get("to") == "config":
            return go_to(request, reverse("models:config-show", args=[host.slug]))
        return go_to(request, reverse("models:model-list"))
    context = frame(step, has_administrator=True) | {
        "host": host,
        "counts": found_text(host),
        "has_findings": findings_exist(host),
    }
    return page(request, "setup/done.html", context)
