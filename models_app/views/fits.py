"""What fits on a host: its models against windows."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from gpus_app.selectors import host_budget
from models_app.pages.fits_page import FitsTable, budget_line
from models_app.pages.shell import remember_host
from models_app.selectors.fits import FitsFilter
from models_app.services.fits import host_fits as fits_of_host
from models_app.views.hosts import host_context, host_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.http import Request, page


@require_safe
@needs(Level.VIEW)
def host_fits(request: Request, slug: str) -> HttpResponse:
    host = host_of(request, slug)
    remember_host(request, host)
    wanted = FitsFilter.from_query(request.GET)
    address = reverse("models:host-fits", args=[slug])
    table = FitsTable(fits_of_host(host, wanted, request.user), address)
    context = host_context(request, host) | {"table": table, "budget_line": budget_line(host_budget(host))}
    response = page(request, "hosts/host_fits.html", context, fragments=["matrix"])
    response["HX-Push-Url"] = f"{address}{wanted.query().rstrip('?')}"
    return response
