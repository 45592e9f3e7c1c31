"""Which devices of a host planning uses, and what people set about that."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app import device_settings
from gpus_app.models import Host
from gpus_app.selectors import device_settings_of, host_for
from gpus_app.services import save_device_settings
from models_app.device_form import DeviceForm, default_data
from models_app.pages.devices_page import device_conflict, device_originals, device_setting_rows
from models_app.pages.host_page import device_bar, device_rows, measured_at
from models_app.pages.memory_page import Conflict
from models_app.views.host_settings import tried_section
from models_app.views.hosts import host_context
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def host_devices(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug)
    if request.method == "POST":
        require(request.user, Level.EDIT, host)
    stored = device_settings_of(host)
    emptied = default_data(stored.version) if request.GET.get("defaults") else None
    form = DeviceForm(request.POST or emptied, stored=stored, devices=list(host.devices.all()))
    conflict, impact, status = None, None, 200
    if request.method == "POST" and request.POST.get("intent") == "impact":
        impact = tried_section(request.user, host, device_settings.SECTION, device_settings.cleaned, form)
        status = 200 if impact else 422
    elif request.method == "POST":
        if form.is_valid():
            conflict = _save(request, host, form)
        if form.is_valid() and conflict is None:
            messages.success(request, "Applied. The models of this host are planned again.")
            return go_to(request, reverse("models:host-gpu", args=[slug]))
        status = 409 if conflict else 422
        host = host_for(request.user, slug)
    stored = device_settings_of(host)
    context = host_context(request, host) | {
        "form": form,
        "stored": stored,
        "rows": device_setting_rows(form, stored),
        "originals": device_originals(stored),
        "conflict": conflict,
        "impact": impact,
        "emptied": bool(emptied) and request.method != "POST",
        "devices": device_rows(host),
        "bar": device_bar(host),
        "measured": measured_at(host),
    }
    return page(request, "hosts/host_devices.html", context, status=status)


def _save(request: Request, host: Host, form: DeviceForm) -> Conflict | None:
    """Store a valid form. Bad values go to the form; after a conflict it carries the new version."""
    try:
        save_device_settings(
            host=host, values=form.values(), version=form.cleaned_data["version"], actor=actor_of(request)
        )
    except Refused as error:
        form.take_refusal(error)
    except EditConflict as error:
        original = {key: request.POST.get(f"was-{key}", "") for key in form.keys}
        form.with_version(error.version)
        return device_conflict(form, error, original)
    return None
