"""Before a text is written: what is live against it, and the ways to write, submit, approve or send it back."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app import selectors, services
from models_app.models import Revision
from models_app.pages.causes_text import untouched_models
from models_app.pages.config_page import config_view
from models_app.pages.diff_text import text_view
from models_app.pages.difference import difference_view
from models_app.pages.fragment_lines import fragment_lines
from models_app.pages.review_page import foreign_text, review_side
from models_app.pages.shell import remember_host
from models_app.selectors.comparing import Comparison, compare_revisions, live_revision, publishing_of
from models_app.selectors.entry_sight import EntrySight, Seen, seen_part
from models_app.selectors.host_findings import host_findings
from models_app.selectors.sight import IN_PARTS
from models_app.services.publishing import send_back, submit
from models_app.views.hosts import host_of
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.access.refusals import tell
from quartermaster_site.errors import Refused
from quartermaster_site.http import Request, go_to, page


@require_safe
@needs(Level.VIEW)
def config_review(request: Request, slug: str) -> HttpResponse:
    """The newest text against what is live."""
    host = host_of(request, slug)
    remember_host(request, host)
    return _review(request, host, selectors.latest_candidate(host))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def config_write(request: Request, slug: str, number: int) -> HttpResponse:
    """GET is the review of one text, POST has it written. A file that is not ours is kept unless somebody says so."""
    host = host_for(request.user, slug, Level.OPERATE)
    revision = selectors.get_revision(host, number)
    if request.method != "POST":
        return _review(request, host, revision)
    try:
        started = services.start_write(
            revision=revision,
            replace=request.POST.get("adopt") == "1",
            seen_path=request.POST.get("path"),
            message=request.POST.get("message", ""),
            typed_slug=request.POST.get("slug", ""),
            lift_pin=request.POST.get("lift") == "1",
            confirmed=request.POST.getlist("confirm"),
            actor=actor_of(request),
        )
    except Refused as error:
        tell(request, error, always=True)
        return _review(request, host, selectors.get_revision(host, number), problem=str(error), status=422)
    if not started.created:
        messages.info(request, "A file is being written already.")
    return go_to(request, reverse("jobs:job-show", args=[started.job.pk]))


@require_POST
@needs(Level.VIEW)
def config_submit(request: Request, slug: str, number: int) -> HttpResponse:
    """Ask a second person."""
    host = host_for(request.user, slug, Level.OPERATE)
    revision = selectors.get_revision(host, number)
    try:
        submit(
            revision=revision,
            message=request.POST.get("message", ""),
            seen_path=request.POST.get("path"),
            confirmed=request.POST.getlist("confirm"),
            actor=actor_of(request),
        )
    except Refused as error:
        tell(request, error, always=True)
        return _review(request, host, revision, problem=str(error), status=422)
    messages.success(request, f"Revision {number} waits for somebody else to approve it.")
    return go_to(request, reverse("models:config-review", args=[slug]))


@require_POST
@needs(Level.VIEW)
def config_refuse(request: Request, slug: str, number: int) -> HttpResponse:
    """Send a submitted text back."""
    revision = selectors.get_revision(host_for(request.user, slug, Level.OPERATE), number)
    send_back(revision=revision, reason=request.POST.get("reason", ""), actor=actor_of(request))
    return go_to(request, reverse("models:config-review", args=[slug]))


def _review(
    request: Request, host: Host, revision: Revision | None, *, problem: str = "", status: int = 200
) -> HttpResponse:
    publishing = publishing_of(host)
    context: dict[str, Any] = {
        "host": host,
        "revision": revision,
        "publishing": publishing,
        "problem": problem,
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
        "may_manage": may(request.user, Level.MANAGE),
        "message": request.POST.get("message", ""),
    }
    if revision is not None:
        comparison, sight = compare_revisions(live_revision(host), revision), EntrySight(request.user, host)
        seen = seen_part(comparison, sight)
        untouched = untouched_models(seen.comparison)
        found = host_findings(host, revision, comparison, untouched=untouched, sees=sight.sees)
        config = config_view(host, revision, sight, found, partial(_model_link, seen.comparison))
        context |= difference_context(request, seen) | {
            "config": config,
            "side": review_side(
                host=host,
                comparison=comparison,
                unseen=seen.unseen,
                config=config,
                publishing=publishing,
                user=request.user,
                found=found,
                shown=sight.shown,
            ),
            "foreign": foreign_text(selectors.refused_write(host), found),
            "authors": ", ".join(sorted({change.actor for change in seen.comparison.changes})),
            "fragments": fragment_lines(host, revision.dialect, sight),
        }
    return page(request, "config/config_review.html", context, status=status)


def _model_link(comparison: Comparison, name: str) -> str:
    """The page of the model that an entry of the text is of; "" where there is none that the person sees."""
    model = comparison.outline.models.get(name)
    row = comparison.rows.get(model.path) if model else None
    return reverse("models:model-show", args=[row]) if row else ""


def difference_context(request: Request, seen: Seen) -> dict[str, Any]:
    """What `config/_difference.html` shows."""
    as_text = request.GET.get("tab") == "text"
    before, after = seen.comparison.before, seen.comparison.after
    asked = {} if request.method == "POST" else request.GET.dict()
    return {
        "view": difference_view(seen, asked),
        "text": text_view(before, after) if as_text and seen.whole else None,
        "withheld": IN_PARTS if as_text and not seen.whole else "",
    }
