"""The list of models, and one of its rows with another quant chosen."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from gpus_app.models import Host
from models_app import selectors
from models_app.models import Root
from models_app.pages.host_page import held_back
from models_app.pages.model_list import ModelList
from models_app.pages.model_row import HostScale, model_item
from models_app.pages.shell import Shell, shell_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.figures import ago
from quartermaster_site.http import Request, page


@require_safe
@needs(Level.VIEW)
def model_list(request: Request) -> HttpResponse:
    wanted = selectors.ModelFilter.from_query(request.GET)
    shell, user = shell_of(request), request.user
    hosts = shell.hosts
    found = selectors.model_list(wanted, user)
    shown = ModelList(found, _scales(shell, found), user)
    context = {
        "list": shown,
        "summary": _summary(hosts),
        "filters": wanted,
        "states": selectors.states_for(user).items(),
        "hosts": hosts,
        "may_edit": any(item.may_edit for item in shown.items),
    }
    host = next((item for item in hosts if item.slug == wanted.host), hosts[0] if len(hosts) == 1 else None)
    if host is not None and may(user, Level.OPERATE, host):
        context |= {"scan_host": host, "scan_held": held_back(host)}
    if not shown.items:
        context |= _why_empty(hosts, wanted.host)
    response = page(request, "models/model_list.html", context, fragments=["models"])
    # The address of what is shown, without the fields that were left empty.
    response["HX-Push-Url"] = f"{reverse('models:model-list')}{wanted.query().rstrip('?')}"
    return response


def _summary(hosts: list[Host]) -> str:
    """`35 on atlas, last scan 12 min ago`, host by host."""
    now = timezone.now()
    return " · ".join(
        f"{getattr(host, 'model_count', 0):,} on {host.name}, last scan {ago(getattr(host, 'last_scan_at', None), now)}"
        for host in hosts
    )


def _scales(shell: Shell, found: selectors.ModelPage) -> dict[int, HostScale]:
    """Of the hosts that the person sees, and of those of which they see nothing but models of this page."""
    listed = {group.chosen.host_id for group in found.groups}
    hosts = [host for host in shell.all_hosts if host in shell.hosts or host.pk in listed]
    return {host.pk: HostScale.of(host) for host in hosts}


def _why_empty(hosts: list[Host], chosen: str) -> dict[str, object]:
    """Of the roots and, where the list is of one host that was never scanned, of this one."""
    roots = list(Root.objects.filter(host__in=hosts).select_related("host"))
    context: dict[str, object] = {"roots": roots, "never_scanned": all(root.last_scan_at is None for root in roots)}
    host = next((host for host in hosts if host.slug == chosen), None)
    own = [root for root in roots if root.host == host]
    if host is not None and not getattr(host, "model_count", 0) and all(root.last_scan_at is None for root in own):
        context |= {"unscanned": host, "unscanned_roots": own}
    return context


@require_safe
@needs(Level.VIEW)
def model_row(request: Request, pk: int) -> HttpResponse:
    """The row of a model with this quant's figures."""
    row = selectors.get_row(pk, request.user)
    wanted = selectors.ModelFilter.from_query(request.GET)
    shell, group = shell_of(request), selectors.group_of(row, request.user)
    host = next(host for host in shell.all_hosts if host.pk == row.host_id)
    many = len({item.pk for item in (*shell.hosts, host)}) > 1
    item = model_item(group, HostScale.of(host), wanted, request.user, show_host=many)
    return page(request, "models/model_list.html#row", {"item": item})
