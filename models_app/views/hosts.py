"""Hosts: the list, one host with its devices, its memory, its folders, and what can be asked of it."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from gpus_app import services as gpu_services
from gpus_app.models import Host
from gpus_app.selectors import host_for, memory_settings, target_vram_gib
from models_app import selectors, services
from models_app.models import Root
from models_app.pages.host_page import (
    budget_text,
    device_bar,
    device_rows,
    held_back,
    host_lines,
    measured_at,
    root_rows,
)
from models_app.pages.machine_page import machine_notes
from models_app.pages.shell import remember_host, shell_of
from models_app.pages.watch_text import watch_text
from models_app.selectors.sight import sees_all
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.http import Request, go_to, page
from quartermaster_site.jobs.pages import under_way
from quartermaster_site.jobs.services import Started


def host_of(request: Request, slug: str) -> Host:
    """The host of an address, read once together with the frame around the page. Raises NotFound."""
    return next((host for host in shell_of(request).hosts if host.slug == slug), None) or host_for(request.user, slug)


def host_context(request: Request, host: Host) -> dict[str, object]:
    """What every tab of a host prints."""
    return {
        "host": host,
        "budget": budget_text(host),
        "budget_text": f"VRAM target {budget_text(host).vram}" if host.probed_at or target_vram_gib(host) else "",
        "held": held_back(host),
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
        "may_manage": may(request.user, Level.MANAGE),
    }


@require_safe
@needs(Level.VIEW)
def host_list(request: Request) -> HttpResponse:
    folders = dict(Root.objects.order_by().values_list("host_id").annotate(n=Count("pk")))
    lines = host_lines(shell_of(request).hosts, folders)
    context = {"hosts": lines, "may_manage": may(request.user, Level.MANAGE)}
    return page(request, "hosts/host_list.html", context, fragments=["hosts"])


@require_safe
@needs(Level.VIEW)
def host_strip(request: Request, slug: str) -> HttpResponse:
    """The status strip of every page, which asks for itself anew: a page left open goes on telling the truth."""
    host_for(request.user, slug)
    return page(request, "components/_strip.html")


@require_safe
@needs(Level.VIEW)
def host_show(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug)
    remember_host(request, host)
    context = host_context(request, host) | {
        "devices": device_rows(host),
        "bar": device_bar(host),
        "measured": measured_at(host),
        "memory": memory_settings(host),
        "roots": root_rows(selectors.roots(host), counted=sees_all(request.user, host)),
        "watch": watch_text(host, counted_too=sees_all(request.user, host)),
        "machine_notes": machine_notes(host),
    }
    return page(request, "hosts/host_detail.html", context, fragments=["devices"])


def started(request: Request, asked: Started) -> HttpResponse:
    """To the job; says so when the same work was under way already."""
    if not asked.created:
        messages.info(request, under_way(asked.job))
    return go_to(request, reverse("jobs:job-show", args=[asked.job.pk]))


@require_POST
@needs(Level.VIEW)
def host_scan(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug, Level.OPERATE)
    return started(request, services.start_scan(host=host, actor=actor_of(request)))


@require_POST
@needs(Level.VIEW)
def host_probe(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug, Level.OPERATE)
    return started(request, gpu_services.start_probe(host=host, actor=actor_of(request)))


@require_POST
@needs(Level.VIEW)
def host_plan(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug, Level.OPERATE)
    return started(request, gpu_services.request_plan(host=host, actor=actor_of(request)))
