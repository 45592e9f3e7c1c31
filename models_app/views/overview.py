"""The first page: is everything all right, and what needs somebody."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from models_app import selectors
from models_app.pages.overview import (
    AttentionLine,
    Card,
    attention_lines,
    away_lines,
    changes,
    control_line,
    host_card,
    plan_lines,
    queue_line,
    setup_line,
    summary,
)
from models_app.pages.shell import shell_of
from models_app.selectors.sight import shown_findings
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.access.selectors import setup_finished_at
from quartermaster_site.errors import NotFound
from quartermaster_site.http import Request, page
from quartermaster_site.jobs.connection import broker_problem
from quartermaster_site.jobs.pages import job_rows
from quartermaster_site.jobs.selectors import control_silence, jobs
from quartermaster_site.jobs.sight import job_sight

LAST = 10


@require_safe
@needs(Level.VIEW)
def overview(request: Request) -> HttpResponse:
    user = request.user
    hosts = selectors.overview(user, shell_of(request).hosts)
    context = {
        "summary": summary(hosts),
        "cards": [_card(request, card) for card in hosts],
        "attention": [
            *([setup_line()] if may(user, Level.MANAGE) and setup_finished_at() is None else []),
            *_queue_lines(),
            *away_lines(card.host for card in hosts),
            *attention_lines(shown_findings(user, selectors.attention(user, LAST))),
            *plan_lines(selectors.troubled_plans(user)),
        ],
        "jobs": job_rows(jobs(user)[:LAST], job_sight(user)),
        "changes": changes(user, [card.host for card in hosts], LAST),
    }
    return page(request, "overview.html", context)


def _queue_lines() -> list[AttentionLine]:
    """Why no job goes on: without a broker the control worker cannot be heard either."""
    if problem := broker_problem():
        return [queue_line(problem)]
    return [control_line(silence)] if (silence := control_silence()) else []


@require_safe
@needs(Level.VIEW)
def card(request: Request, slug: str) -> HttpResponse:
    """One host's card, which refreshes itself."""
    found = next((item for item in selectors.overview(request.user) if item.host.slug == slug), None)
    if found is None:
        raise NotFound(f"There is no host {slug!r}.")
    return page(request, "overview.html#card", {"card": _card(request, found)})


def _card(request: Request, card: selectors.HostCard) -> Card:
    return host_card(card, may_scan=may(request.user, Level.OPERATE, card.host))
