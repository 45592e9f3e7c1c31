"""What was changed about the rules and the shared variants of a host, by whom, and the way back."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from gpus_app.models import Host
from gpus_app.selectors import host_for
from models_app.editor_form import posted_version
from models_app.pages.history_page import history, subject_of
from models_app.selectors.editing import MOST_CHANGES
from models_app.selectors.rule_sight import seen_changes
from models_app.selectors.rules import get_shared_change, shared_changes
from models_app.services import fleet_variants as fleet
from models_app.services import rules as rule_services
from models_app.views.hosts import host_context
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import NotFound
from quartermaster_site.http import Request, go_to, page


@require_safe
@needs(Level.VIEW)
def host_history(request: Request, slug: str) -> HttpResponse:
    """All changes, or with ?rule= or ?variant= those of one rule or shared variant."""
    host = host_for(request.user, slug)
    number, variant = request.GET.get("rule", ""), request.GET.get("variant", "")[:40].replace("\x00", "")
    rule = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
    changes = seen_changes(request.user, host, shared_changes(host, rule=rule, variant=variant))[:MOST_CHANGES]
    context = host_context(request, host) | {
        "entries": history(
            changes,
            _versions(host, {subject_of(change) for change in changes}),
            address=lambda change: reverse("models:shared-restore", args=[slug, change]),
        ),
        "only": bool(rule or variant),
        "most": MOST_CHANGES,
    }
    return page(request, "hosts/host_history.html", context)


def _versions(host: Host, subjects: set[str]) -> dict[str, int]:
    """What a restore starts from, by what it is about. Shared variants are one section with one version."""
    section = fleet.fleet_section(host).version
    rules = {f"rule {pk}": version for pk, version in rule_services.stored_rules(host).values_list("pk", "version")}
    return {subject: rules.get(subject, 0) if subject.startswith("rule ") else section for subject in subjects}


@require_POST
@needs(Level.VIEW)
def shared_restore(request: Request, slug: str, change: int) -> HttpResponse:
    """Brings the state after one change back, as a change of its own."""
    host = host_for(request.user, slug, Level.EDIT)
    held = get_shared_change(host, change)
    if not seen_changes(request.user, host, [held]):
        raise NotFound("There is no such change.")
    version, actor = posted_version(request.POST), actor_of(request)
    if held.rule:
        rule_services.restore_rule(host=host, change=held, version=version, actor=actor)
    else:
        fleet.restore_fleet_variant(host=host, change=held, version=version, actor=actor)
    messages.success(request, "Restored. The models of this host are planned again.")
    return go_to(request, reverse("models:host-history", args=[slug]))
