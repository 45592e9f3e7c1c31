"""Machines elsewhere: adding one with a code, enrolling it anew, pausing, removing."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from gpus_app import enrolment
from gpus_app.enrolment import is_loopback
from gpus_app.models import Host
from gpus_app.selectors import host_for
from gpus_app.services import rename_host
from models_app.machine_form import MachineForm
from models_app.models import Revision, Row
from models_app.pages.machine_page import machine_of
from models_app.pages.shell import remember_host
from models_app.views.hosts import host_context
from quartermaster_site import broker_accounts, env
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import Refused
from quartermaster_site.http import Request, go_to, page, wants_fragment


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def machine_add(request: Request) -> HttpResponse:
    """The form of a new host; the answer to a POST is the only page that ever shows its code."""
    hindrance = enrolment.why_no_machines()
    form = MachineForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            host, code = enrolment.create_host(**form.cleaned_data, actor=actor_of(request))
        except Refused as error:
            form.take_refusal(error)
        else:
            return _code_page(request, host, code)
    context = {
        "form": form,
        "hindrance": hindrance,
        "shared": "" if hindrance else broker_accounts.why_shared(),
        "has_redis": bool(env.redis_url()),
        "address": _address_for_others(request),
    }
    return page(request, "hosts/machine_add.html", context, status=422 if form.errors else 200)


def _address_for_others(request: Request) -> str:
    """The name of this machine for others in its network, as far as it can be told from here."""
    name = urlsplit(request.build_absolute_uri("/")).hostname or ""
    return socket.gethostname() if is_loopback(name) else name


def enrol_context(request: Request, host: Host, code: str) -> dict[str, Any]:
    """What the one page prints that ever shows this code: the command, and what is wrong with its address."""
    server = request.build_absolute_uri("/").rstrip("/")
    return {
        "host": host,
        "command": f"./quartermaster agent --server {server} --code {code}",
        "insecure": not request.is_secure(),
        "only_here": is_loopback(urlsplit(server).hostname or ""),
    }


def _code_page(request: Request, host: Host, code: str) -> HttpResponse:
    remember_host(request, host)
    return page(request, "hosts/machine_code.html", enrol_context(request, host, code))


@require_safe
@needs(Level.VIEW)
def machine_show(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug)
    machine = machine_of(host)
    if wants_fragment(request) and request.GET.get("seen", machine.seen) != machine.seen:
        return HttpResponseClientRefresh()  # head, buttons and changes depend on it as well
    context = host_context(request, host) | {"machine": machine}
    return page(request, "hosts/machine_detail.html", context, fragments=["machine"])


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def machine_code(request: Request, slug: str) -> HttpResponse:
    """Whether to cut the machine off, then its new code."""
    host = host_for(request.user, slug, Level.MANAGE)
    if request.method != "POST":
        return page(request, "hosts/machine_renew.html", {"host": host})
    return _code_page(request, host, enrolment.new_code(host=host, actor=actor_of(request)))


@require_POST
@needs(Level.MANAGE)
def machine_pause(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug, Level.MANAGE)
    paused = request.POST.get("paused") == "1"
    enrolment.pause_host(host=host, paused=paused, actor=actor_of(request))
    messages.success(request, f"{host} is paused: new jobs wait." if paused else f"{host} goes on.")
    return go_to(request, reverse("models:machine-show", args=[slug]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def machine_remove(request: Request, slug: str) -> HttpResponse:
    """What would be forgotten, and the question."""
    host = host_for(request.user, slug, Level.MANAGE)
    problem = ""
    if request.method == "POST":
        try:
            enrolment.remove_host(host=host, typed_slug=request.POST.get("slug", ""), actor=actor_of(request))
        except Refused as error:
            problem = error.fields.get("slug", str(error))
        else:
            messages.success(request, f"{host} is removed. Its files are as they were.")
            return go_to(request, reverse("models:host-list"))
    context = {
        "host": host,
        "problem": problem,
        "models": Row.objects.filter(host=host).count(),
        "revisions": Revision.objects.filter(host=host).count(),
    }
    return page(request, "hosts/machine_remove.html", context, status=422 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def machine_name(request: Request, slug: str) -> HttpResponse:
    """What people call a host; its short name stays."""
    host = host_for(request.user, slug, Level.MANAGE)
    typed, problem = request.POST.get("name", host.name), ""
    if request.method == "POST":
        try:
            rename_host(host=host, name=typed, actor=actor_of(request))
        except Refused as error:
            problem = error.fields.get("name", str(error))
        else:
            messages.success(request, f"{host} has its new name.")
            return go_to(request, reverse("models:machine-show", args=[slug]))
    context = {"host": host, "typed": typed, "problem": problem}
    return page(request, "hosts/machine_name.html", context, status=422 if problem else 200)
