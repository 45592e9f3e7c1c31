"""The first page: is everything all right, and what needs somebody."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from models_app import selectors
from models_app.pages.overview import attention_lines, changes, host_card, plan_lines, setup_line, summary
from models_app.pages.shell import shell_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.access.selectors import setup_finished_at
from quartermaster_site.errors import NotFound
from quartermaster_site.http import Request, page
from quartermaster_site.jobs.pages import job_rows
from quartermaster_site.jobs.selectors import jobs
from quartermaster_site.jobs.sight import job_sight

LAST = 10


@require_safe
@needs(Level.VIEW)
def overview(request: Request) -> HttpResponse:
    hosts = selectors.overview(shell_of(request).hosts)
    may_scan = may(request.user, Level.OPERATE)
    context = {
        "summary": summary(hosts),
        "cards": [host_card(card, may_scan=may_scan) for card in hosts],
        "attention": [
            *([setup_line()] if may(request.user, Level.MANAGE) and setup_finished_at() is None else []),
            *attention_lines(selectors.attention(LAST)),
            *plan_lines(selectors.troubled_plans()),
        ],
        "jobs": job_rows(jobs(request.user)[:LAST], job_sight(request.user)),
        "changes": changes(LAST),
    }
    return page(request, "overview.html", context)


@require_safe
@needs(Level.VIEW)
def card(request: Request, slug: str) -> HttpResponse:
    """One host's card, which refreshes itself."""
    found = next((item for item in selectors.overview() if item.host.slug == slug), None)
    if found is None:
        raise NotFound(f"There is no host {slug!r}.")
    context = {"card": host_card(found, may_scan=may(request.user, Level.OPERATE))}
    return page(request, "overview.html#card", context)
