"""The history of a host's texts: list, comparison of any two, rollback, pin, and the policy."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app import selectors
from models_app.pages.review_page import mass_text
from models_app.pages.revisions_page import adopted_text, policy_choices, revision_lines
from models_app.pages.shell import remember_host
from models_app.selectors.comparing import compare_revisions, live_revision, publishing_of
from models_app.selectors.entry_sight import EntrySight, seen_part
from models_app.selectors.revision_history import revision_history
from models_app.services.adopting import adopt_settings
from models_app.services.publishing import lift_pin, roll_back, save_policy
from models_app.services.retention import save_keeping
from models_app.services.seen_changes import unseen_text
from models_app.views.review import difference_context
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.access.refusals import tell
from quartermaster_site.errors import Refused
from quartermaster_site.http import Request, go_to, page

PER_PAGE = 50


def parsed_count(text: str) -> int:
    """A whole number of a form; -1 for anything else, which the service refuses by its limits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1


@require_safe
@needs(Level.VIEW)
def config_history(request: Request, slug: str) -> HttpResponse:
    """All texts, the newest first. With `a` and `b` in the address: to the comparison of these two."""
    host = host_for(request.user, slug)
    remember_host(request, host)
    chosen = [request.GET.get(name, "") for name in ("a", "b")]
    if all(text.isascii() and text.isdigit() and len(text) < 9 for text in chosen):
        return go_to(request, reverse("models:config-diff", args=[slug, *sorted(map(int, chosen))]))
    return _history_page(request, host)


def _history_page(request: Request, host: Host, problems: Mapping[str, str] | None = None) -> HttpResponse:
    """`problems` are what is wrong with the numbers of texts and backups to keep, by field."""
    live, publishing, sight = live_revision(host), publishing_of(host), EntrySight(request.user, host)
    publishing.held = sight.shown(publishing.held)
    found = Paginator(revision_history(host), PER_PAGE)
    shown = found.get_page(request.GET.get("page"))
    context = {
        "host": host,
        "publishing": publishing,
        "page": shown,
        "whole": sight.whole,
        "lines": revision_lines(shown, live, publishing, sight),
        "policies": policy_choices(publishing),
        "problems": problems or {},
        "typed": {name: request.POST.get(name, "")[:20] for name in problems or {}},
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
        "may_manage": may(request.user, Level.MANAGE),
    }
    return page(request, "config/config_history.html", context, status=422 if problems else 200)


@require_safe
@needs(Level.VIEW)
def config_diff(request: Request, slug: str, number: int, other: int) -> HttpResponse:
    """From one revision to another."""
    host = host_for(request.user, slug)
    before, after = (selectors.get_revision(host, item) for item in (number, other))
    seen = seen_part(compare_revisions(before, after), EntrySight(request.user, host))
    context = {
        "host": host,
        "publishing": publishing_of(host),
        "before": before,
        "after": after,
        "may_operate": may(request.user, Level.OPERATE, host),
        "may_edit": may(request.user, Level.EDIT, host),
        "whole": seen.whole,
        **difference_context(request, seen),
    }
    return page(request, "config/config_diff.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.VIEW)
def config_rollback(request: Request, slug: str, number: int) -> HttpResponse:
    """GET shows what would change, POST brings the old text back."""
    host = host_for(request.user, slug, Level.OPERATE)
    revision = selectors.get_revision(host, number)
    problem, status = "", 200
    if request.method == "POST":
        try:
            fresh, started = roll_back(
                revision=revision,
                message=request.POST.get("message", ""),
                seen_path=request.POST.get("path"),
                typed_slug=request.POST.get("slug", ""),
                actor=actor_of(request),
            )
        except Refused as error:
            tell(request, error, always=True)
            problem, status = str(error), 422
        else:
            if started:
                return go_to(request, reverse("jobs:job-show", args=[started.job.pk]))
            messages.success(request, f"Revision {fresh.number} waits for somebody else to approve it.")
            return go_to(request, reverse("models:config-review", args=[slug]))
    comparison = compare_revisions(live_revision(host), revision)
    seen = seen_part(comparison, EntrySight(request.user, host))
    context = {
        "host": host,
        "revision": revision,
        "publishing": publishing_of(host),
        "mass": mass_text(comparison.mass, told=seen.whole) if comparison.mass.holds else "",
        "problem": problem,
        "may_operate": True,
        "held": unseen_text(seen.unseen) if seen.unseen else "",
        "may_edit": may(request.user, Level.EDIT, host),
        "may_manage": may(request.user, Level.MANAGE),
        **difference_context(request, seen),
    }
    return page(request, "config/config_rollback.html", context, status=status)


@require_POST
@needs(Level.VIEW)
def config_unpin(request: Request, slug: str) -> HttpResponse:
    """The host takes newer texts again."""
    lift_pin(host=host_for(request.user, slug, Level.OPERATE), actor=actor_of(request))
    return go_to(request, reverse("models:config-review", args=[slug]))


@require_POST
@needs(Level.MANAGE)
def config_policy(request: Request, slug: str) -> HttpResponse:
    """When texts are written."""
    save_policy(
        host=host_for(request.user, slug),
        policy=request.POST.get("policy", ""),
        seen=request.POST.get("was"),
        actor=actor_of(request),
    )
    return go_to(request, reverse("models:config-history", args=[slug]))


@require_POST
@needs(Level.MANAGE)
def config_keeping(request: Request, slug: str) -> HttpResponse:
    """How many texts and backups are kept."""
    host = host_for(request.user, slug)
    numbers = [parsed_count(request.POST.get(name, "")) for name in ("revisions", "backups")]
    try:
        save_keeping(host=host, revisions=numbers[0], backups=numbers[1], actor=actor_of(request))
    except Refused as error:
        return _history_page(request, host, error.fields)
    return go_to(request, reverse("models:config-history", args=[slug]))


@require_POST
@needs(Level.VIEW)
def config_settings(request: Request, slug: str, number: int) -> HttpResponse:
    """Settings and pins as they were when a text was planned."""
    host = host_for(request.user, slug, Level.EDIT)
    found = adopt_settings(revision=selectors.get_revision(host, number), actor=actor_of(request))
    messages.success(request, adopted_text(found, number))
    if found.left:
        words = f"To be done by hand: {', '.join(found.left[:10])}."
        messages.warning(request, EntrySight(request.user, host).shown(words))
    return go_to(request, reverse("models:config-review", args=[slug]))
