"""The Router page of a host: what it has loaded, loading and unloading, and where it listens."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app.models import Router, StoredPlan
from models_app.pages.router_page import router_view
from models_app.pages.shell import remember_host, shell_of
from models_app.router_form import RouterForm
from models_app.routing import ALL
from models_app.selectors.entry_sight import EntrySight
from models_app.services import routers
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.pages import job_row
from quartermaster_site.jobs.sight import job_sight


@require_safe
@needs(Level.VIEW)
def router_home(request: Request) -> HttpResponse:
    """To the router of the host looked at last; to the hosts where there is none yet."""
    host = shell_of(request).host
    return go_to(request, reverse("models:router-show", args=[host.slug]) if host else reverse("models:host-list"))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def router_show(request: Request, slug: str) -> HttpResponse:
    """What the router said last; POST sets where it listens."""
    host = host_for(request.user, slug)
    remember_host(request, host)
    if request.method == "POST":
        require(request.user, Level.MANAGE)
    router = routers.router_of(host)
    form = RouterForm(request.POST or None, router=router, dialect=host.publish_dialect)
    status = _save(request, host, router, form) if request.method == "POST" else 200
    if request.method == "POST" and status == 200:
        messages.success(request, "Applied. The router is asked now." if form.cleaned_data["url"] else "Applied.")
        return go_to(request, reverse("models:router-show", args=[slug]))
    return _router_page(request, host, router, form, status)


def _router_page(request: Request, host: Host, router: Router, form: RouterForm, status: int) -> HttpResponse:
    may_manage = may(request.user, Level.MANAGE)
    names = [item["id"] for item in router.listed]
    plans = StoredPlan.objects.filter(row__host=host).values_list("profile_id", "est_vram_bytes") if names else []
    sight, jobs = EntrySight(request.user, host), job_sight(request.user)
    orders = jobs.seen(Job.objects.filter(kind__in=routers.KINDS.values(), host=host))
    last = orders.select_related("host", "started_by").first()
    view = router_view(router, dict(plans), sight, shows_commands=may_manage)
    context = {
        "host": host,
        "router": router,
        "view": view,
        "form": form,
        "last": last,
        "last_job": job_row(last, jobs) if last else None,
        "may_operate": may(request.user, Level.OPERATE, host) or any(line.may for line in view.lines + view.others),
        "may_manage": may_manage,
        "all": ALL,
    }
    return page(request, "router/router_detail.html", context, fragments=["router-state"], status=status)


def _save(request: Request, host: Host, router: Router, form: RouterForm) -> int:
    """Store a valid form; the status of the answer."""
    if not form.is_valid():
        return 422
    try:
        routers.save_router(host=host, **form.values(router), actor=actor_of(request))
    except Refused as error:
        form.take_refusal(error)
        return 422
    except EditConflict as error:
        form.take_conflict(error)
        return 409
    return 200


@require_POST
@needs(Level.VIEW)
def router_action(request: Request, slug: str) -> HttpResponse:
    """Load or unload the model that the form names."""
    host = host_for(request.user, slug)
    model, action = request.POST.get("model", ""), request.POST.get("action", "")
    started = routers.start_action(host=host, action=action, model=model, actor=actor_of(request))
    if not started.created:
        messages.info(request, "The router is doing that already.")
    return go_to(request, reverse("jobs:job-show", args=[started.job.pk]))
