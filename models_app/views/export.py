"""Everything that is set for a host as files, one by one or as an archive."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app.pages.export_page import archive_name, export_lines
from models_app.pages.shell import remember_host
from models_app.selectors.comparing import publishing_of
from models_app.selectors.host_files import Export
from models_app.selectors.sight import IN_PARTS, require_whole, sees_all
from quartermaster_site.access.audit import actor_of, record
from quartermaster_site.access.permissions import Level, may, needs, require
from quartermaster_site.errors import NotFound
from quartermaster_site.http import Request, page

_TYPES = {".yaml": "application/yaml", ".csv": "text/csv", ".zip": "application/zip"}


@require_safe
@needs(Level.VIEW)
def export_show(request: Request, slug: str) -> HttpResponse:
    host = host_for(request.user, slug)
    remember_host(request, host)
    whole = sees_all(request.user, host)
    name = archive_name(host)
    context = {
        "host": host,
        "lines": export_lines(host, Export(host).names) if whole else [],
        "withheld": "" if whole else IN_PARTS,
        "archive": name,
        "archive_url": reverse("models:export-file", args=[slug, name]),
        "publishing": publishing_of(host),
        "may_manage": may(request.user, Level.MANAGE),
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
    }
    return page(request, "config/config_export.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def export_file(request: Request, slug: str, name: str) -> HttpResponse:
    """One file without secrets. Sent as a form it has them: for administrators, and it is recorded."""
    host = host_for(request.user, slug)
    require_whole(request.user, host)
    with_secrets = request.method == "POST"
    if with_secrets:
        require(request.user, Level.MANAGE)
    body = _content(host, name, with_secrets)
    if with_secrets:
        record(actor_of(request), "config.export-secrets", subject=host, label=name, host_slug=host.slug)
    kind = next((kind for suffix, kind in _TYPES.items() if name.endswith(suffix)), "text/plain")
    charset = "" if kind == "application/zip" else "; charset=utf-8"
    response = HttpResponse(body, content_type=f"{kind}{charset}")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _content(host: Host, name: str, with_secrets: bool) -> bytes | str:
    export = Export(host, with_secrets=with_secrets)
    if name == archive_name(host):
        return export.archive()
    if name not in export.names:
        raise NotFound("There is no such file in the export.")
    return export.text(name)
