"""What people set about a host: memory, with a version, and the folders that are scanned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app import memory_settings as memory_section
from gpus_app.forms import KEYS, MemoryForm
from gpus_app.models import Host
from gpus_app.selectors import host_for, memory_settings, watch_settings_of
from gpus_app.services import save_memory_settings
from models_app import selectors, services
from models_app.device_form import DeviceForm
from models_app.models import Root
from models_app.pages.host_page import root_rows
from models_app.pages.impact_page import ImpactText, impact_text
from models_app.pages.memory_page import Conflict, memory_conflict, memory_rows, originals
from models_app.pages.watch_text import watch_text
from models_app.root_form import RootForm
from models_app.selectors.sight import sees_all
from models_app.services.impact import settings_impact
from models_app.views.hosts import host_context
from models_app.watch_form import WatchForm
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, local_path, page


def save_memory(request: Request, host: Host, form: MemoryForm) -> Conflict | None:
    """Store a valid form. Bad values go to the form; after a conflict it carries the new version."""
    try:
        save_memory_settings(
            host=host, values=form.values(), version=form.cleaned_data["version"], actor=actor_of(request)
        )
    except Refused as error:
        form.take_refusal(error)
    except EditConflict as error:
        original = {key: request.POST.get(f"was-{key}", "") for key in KEYS}
        form.with_version(error.version)
        return memory_conflict(form, error, original)
    return None


def tried_section(
    user: Any,
    host: Host,
    section: str,
    cleaned: Callable[[Mapping[str, Any]], dict[str, Any]],
    form: MemoryForm | DeviceForm,
) -> ImpactText | None:
    """What a form of a section would change; None where it is not valid, which it then says."""
    if not form.is_valid():
        return None
    try:
        values = cleaned(form.values())
    except Refused as error:
        form.take_refusal(error)
        return None
    return impact_text(settings_impact(host, section, values, user))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def host_memory(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug)
    if request.method == "POST":
        require(request.user, Level.EDIT, host)
    memory = memory_settings(host)
    emptied = {"version": str(memory.version)} if request.GET.get("defaults") else None
    form = MemoryForm(request.POST or emptied, memory=memory)
    conflict, impact, status = None, None, 200
    if request.method == "POST" and request.POST.get("intent") == "impact":
        impact = tried_section(request.user, host, memory_section.SECTION, memory_section.cleaned, form)
        status = 200 if impact else 422
    elif request.method == "POST":
        if form.is_valid():
            conflict = save_memory(request, host, form)
        if form.is_valid() and conflict is None:
            messages.success(request, "Applied. The models of this host are planned again.")
            return go_to(request, reverse("models:host-memory", args=[slug]))
        status = 409 if conflict else 422
    memory = memory_settings(host_for(request.user, slug))
    context = host_context(request, host) | {
        "form": form,
        "memory": memory,
        "rows": memory_rows(form, memory),
        "originals": originals(memory),
        "conflict": conflict,
        "impact": impact,
        "emptied": bool(emptied) and request.method != "POST",
    }
    return page(request, "hosts/host_memory.html", context, fragments=["memory-form"], status=status)


@require_safe
@needs(Level.VIEW)
def host_folders(request: Request, slug: str) -> HttpResponse:
    return folders_page(request, host_for(request.user, slug), RootForm(path=request.GET.get("path", "")))


def folders_page(
    request: Request, host: Host, form: RootForm, *, watch_form: WatchForm | None = None, status: int = 200
) -> HttpResponse:
    context = host_context(request, host) | {
        "form": form,
        "watch": watch_text(host, counted_too=sees_all(request.user, host)),
        "watch_form": watch_form or WatchForm(watch=watch_settings_of(host)),
        "roots": root_rows(selectors.roots(host), counted=sees_all(request.user, host)),
        "add_url": reverse("models:root-add", args=[host.slug]),
    }
    return page(request, "hosts/host_folders.html", context, status=status)


def add_root(request: Request, host: Host, form: RootForm) -> bool:
    """Add the folder of a form; False when it was refused, with the reason in the form."""
    if not form.is_valid():
        return False
    try:
        services.add_root(host=host, actor=actor_of(request), **form.cleaned_data)
    except Refused as error:
        form.take_refusal(error)
        return False
    return True


def say_added(request: Request, host: Host, form: RootForm, then: str) -> None:
    path = form.cleaned_data["path"]
    if services.is_outside(host, path):
        text = f"{path} is added, but seems to lie outside the folders that this host lets people see (QM_BROWSE_ROOTS"
        messages.warning(request, f"{text} there). It is not scanned then.")
    else:
        messages.success(request, f"{path} {then}")


@require_POST
@needs(Level.MANAGE)
def root_add(request: Request, slug: str) -> HttpResponse:
    host, form = host_for(request.user, slug), RootForm(request.POST)
    if not add_root(request, host, form):
        return folders_page(request, host, form, status=422)
    say_added(request, host, form, "will be scanned with the next scan.")
    return go_to(request, reverse("models:host-folders", args=[slug]))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def root_remove(request: Request, slug: str, pk: int) -> HttpResponse:
    """Asks first: GET is the question, POST the answer. `next` leads back to the wizard."""
    host, folders = host_for(request.user, slug), reverse("models:host-folders", args=[slug])
    back = local_path(request, request.POST.get("next") or request.GET.get("next") or "", default="")
    root = get_object_or_404(Root.objects.select_related("host"), pk=pk, host=host)
    if request.method == "POST":
        services.remove_root(root=root, actor=actor_of(request))
        messages.success(request, f"{root.path} is no longer scanned.")
        return go_to(request, back or folders)
    context = {"host": host, "root": root, "count": root.rows.count(), "back": back, "folders": folders}
    return page(request, "hosts/root_remove.html", context)
