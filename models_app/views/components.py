"""Files that serve other models: encoders, VAEs, projectors, drafters, prompt enhancers."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import section
from models_app import convert
from models_app.pages.component_list import STATES, ComponentFilter, ComponentList
from models_app.pages.component_words import pin_key
from models_app.pages.shell import shell_of
from models_app.selectors.components import get_component, seen_components
from models_app.selectors.sight import HostSight
from models_app.services.component_pins import set_component_pin
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import Request, go_to, page

TEMPLATE = "library/component_list.html"


@require_safe
@needs(Level.VIEW)
def component_list(request: Request) -> HttpResponse:
    wanted = ComponentFilter.from_query(request.GET)
    host = _host(request, wanted.host)
    if host is None:
        return page(request, TEMPLATE)
    found = seen_components(host, HostSight(request.user, host.pk))
    context = {
        "list": ComponentList(found, wanted, request.GET.get("page")),
        "hosts": shell_of(request).hosts,
        "states": STATES.items(),
        "lost_pins": [
            f"The pin {key} names {path}, which is gone: it is ignored." for key, path in found.lost_pins.items()
        ],
        "chat_url": wanted.url(chat=not wanted.chat),
        "clear_url": ComponentFilter(host=wanted.host, tab=wanted.tab).url(),
        "never_scanned": all(root.last_scan_at is None for root in found.roots),
        "may_pin": wanted.tab == "encoders" and may(request.user, Level.EDIT, host),
        "pin_version": section(host, convert.ENCODER_SECTION).version,
    }
    response = page(request, TEMPLATE, context, fragments=["components"])
    # The address of what is shown, without the fields that were left empty.
    response["HX-Push-Url"] = wanted.url()
    return response


def _host(request: Request, slug: str) -> Host | None:
    """The host that the address names, else the one that the strip shows."""
    shell = shell_of(request)
    return next((host for host in shell.hosts if host.slug == slug), shell.host)


@require_POST
@needs(Level.VIEW)
def component_pin(request: Request, pk: int) -> HttpResponse:
    """Pins a file for all models of its host, or lifts the pin."""
    component = get_component(pk, request.user)
    require(request.user, Level.EDIT, component.host)
    pinned = request.POST.get("off") != "1"
    key = pin_key(component.role, component.family, component.width)
    if not key:
        raise Refused("No pin of a host stands for files of this kind: name it on the model's page instead.")
    version = request.POST.get("version", "")
    try:
        set_component_pin(
            component=component,
            key=key,
            pinned=pinned,
            version=int(version) if version.isascii() and version.isdigit() and len(version) < 9 else -1,
            actor=actor_of(request),
        )
    except EditConflict as conflict:
        messages.error(request, f"Not saved: {conflict} Look again, then pin.")
    else:
        name = component.path.rpartition("/")[2]
        messages.success(request, f"{name} is {'pinned as' if pinned else 'no longer pinned as'} {key}.")
    return go_to(request, ComponentFilter(host=component.host.slug).url())
