"""The config file of a host: its text and findings, the dialect, its path, download."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from gpus_app import services as gpu_services
from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app import selectors
from models_app.models import Revision, Row
from models_app.pages.config_page import FILE_NAMES, config_view, dialect_choices, seen_words
from models_app.pages.shell import remember_host, shell_of
from models_app.selectors.comparing import publishing_of, seen_on_host, watch_of
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.sight import require_whole, seen_rows
from models_app.services.target_looks import adopt_seen, start_look
from models_app.target_form import TargetForm
from quartermaster_site.access.audit import actor_of, record
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.access.redaction import redact_lines
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.http import STOP_POLLING, Request, go_to, page, wants_fragment
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.pages import job_row
from quartermaster_site.jobs.selectors import unfinished_job
from quartermaster_site.jobs.sight import job_sight


@require_safe
@needs(Level.VIEW)
def config_home(request: Request) -> HttpResponse:
    """To the config of the host looked at last; to the hosts where there is none yet."""
    host = shell_of(request).host
    return go_to(request, reverse("models:config-show", args=[host.slug]) if host else reverse("models:host-list"))


@require_safe
@needs(Level.VIEW)
def config_show(request: Request, slug: str) -> HttpResponse:
    """The newest text, or the revision that the address names."""
    host = host_for(request.user, slug)
    remember_host(request, host)
    number = request.GET.get("revision", "")
    known = number.isascii() and number.isdigit() and len(number) < 9
    revision = selectors.get_revision(host, int(number)) if known else selectors.latest_candidate(host)
    return _config_page(request, host, revision, TargetForm(path=host.publish_path))


def _config_page(
    request: Request, host: Host, revision: Revision | None, form: TargetForm, status: int = 200
) -> HttpResponse:
    planning = unfinished_job("plan_host", host)
    last = Job.objects.filter(kind="publish", host=host).select_related("host", "started_by").first()
    refused, sight = selectors.refused_write(host), EntrySight(request.user, host)
    publishing = publishing_of(host)
    watch = watch_of(host)
    seen = seen_on_host(host, watch)
    context = {
        "host": host,
        "revision": revision,
        "view": config_view(host, revision, sight),
        "publishing": publishing,
        "watch": watch,
        "seen": seen_words(seen),
        "put_back": seen[1] if seen and seen[1] and seen[0] != host.written_sha256 else None,
        "dialects": dialect_choices(host),
        "form": form,
        "planning": planning,
        "has_models": seen_rows(request.user).filter(host=host).exclude(state=Row.State.MISSING).exists(),
        "last_job": job_row(last, job_sight(request.user)) if last else None,
        "refused": refused,
        "revisions": list(selectors.revisions(host)[:10]),
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
        "may_manage": may(request.user, Level.MANAGE),
    }
    if wants_fragment(request) and planning is None:
        status = STOP_POLLING
    return page(request, "config/config_detail.html", context, fragments=["config-text"], status=status)


@require_POST
@needs(Level.VIEW)
def config_render(request: Request, slug: str) -> HttpResponse:
    gpu_services.request_plan(host=host_for(request.user, slug, Level.OPERATE), actor=actor_of(request))
    return go_to(request, reverse("models:config-show", args=[slug]))


@require_POST
@needs(Level.MANAGE)
def config_target(request: Request, slug: str) -> HttpResponse:
    """The path of the file and the dialect of its router; the text is made anew when one of them changes."""
    host = host_for(request.user, slug)
    form, status = TargetForm(request.POST), 422
    if form.is_valid():
        try:
            gpu_services.save_target(host=host, **form.target(), seen=form.seen(), actor=actor_of(request))
            return go_to(request, reverse("models:config-show", args=[slug]))
        except Refused as error:
            form.take_refusal(error)
        except EditConflict as error:
            form.add_error(None, str(error))
            status = 409
    return _config_page(request, host_for(request.user, slug), selectors.latest_candidate(host), form, status=status)


@require_safe
@needs(Level.VIEW)
def config_download(request: Request, slug: str, number: int) -> HttpResponse:
    """The text with placeholders for keys. Only administrators get what else looks like a secret, which is noted."""
    host = host_for(request.user, slug)
    revision = selectors.get_revision(host, number)
    require_whole(request.user, host)
    text = redact_lines(revision.text)
    if text != revision.text and may(request.user, Level.MANAGE):
        record(actor_of(request), "config.secrets", subject=revision, host_slug=host.slug)
        text = revision.text
    name = FILE_NAMES.get(revision.dialect, "config.yaml")
    kind = "application/yaml" if name.endswith(".yaml") else "text/plain"
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_POST
@needs(Level.VIEW)
def config_look(request: Request, slug: str) -> HttpResponse:
    """Have the host say what lies at the path."""
    start_look(host=host_for(request.user, slug, Level.OPERATE), actor=actor_of(request))
    messages.info(request, "The host is asked what lies there; the answer stands below in a moment.")
    shown_on = "models:config-drift" if request.POST.get("next") == "drift" else "models:config-show"
    return go_to(request, reverse(shown_on, args=[slug]))


@require_POST
@needs(Level.VIEW)
def config_adopt(request: Request, slug: str) -> HttpResponse:
    """What lies on the host is live: one of our texts that somebody put back."""
    host = host_for(request.user, slug, Level.OPERATE)
    found = adopt_seen(host=host, sha256=request.POST.get("sha256", ""), actor=actor_of(request))
    messages.success(request, f"Revision {found.number} counts as live; {host} is pinned to it.")
    return go_to(request, reverse("models:config-history", args=[slug]))
