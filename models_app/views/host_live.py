"""A host at this moment, for everybody who watches: pages read the one sample that its worker sent."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from gpus_app.models import Host, Telemetry
from gpus_app.selectors import host_for
from gpus_app.telemetry import points
from models_app.models import Router
from models_app.pages.live_history import history_of, plots_of
from models_app.pages.live_page import live_view, loaded_lines, seen_lines
from models_app.pages.shell import remember_host
from models_app.selectors.sight import HostSight
from models_app.views.hosts import host_context
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.http import Request, page, wants_fragment

TEMPLATE = "hosts/host_live.html"


@require_safe
@needs(Level.VIEW)
def host_live(request: Request, slug: str) -> HttpResponse:
    """The whole page once; the fragment that it polls is one query, whoever asks."""
    if wants_fragment(request):
        host = host_for(request.user, slug, among=Host.objects.select_related("telemetry", "router"))
        return page(request, TEMPLATE, _live(request, host), fragments=["live"])
    host = host_for(request.user, slug)
    remember_host(request, host)
    telemetry: Telemetry | None = getattr(host, "telemetry", None)
    past = points(host, telemetry.received_at) if telemetry and telemetry.received_at else []
    plots = plots_of(telemetry.sample, past) if telemetry else []
    context = host_context(request, host) | {"plots": plots, "history": history_of(plots, past)}
    return page(request, TEMPLATE, context | _live(request, host))


def _live(request: Request, host: Host) -> dict[str, object]:
    router: Router | None = getattr(host, "router", None)
    sight = HostSight(request.user, host.pk)
    loaded, hidden = seen_lines(loaded_lines(router), lambda name: sight.served(name) and not sight.names(name))
    return {
        "host": host,
        "live": live_view(host, getattr(host, "telemetry", None), timezone.now()),
        "router": router if router and router.url else None,
        "loaded": loaded,
        "hidden": hidden,
    }
