"""Findings: files that are not served, and plans that need a look."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from models_app import selectors
from models_app.models import Finding
from models_app.pages.issue_list import LEVELS, finding_row
from models_app.pages.overview import plan_lines
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.http import Request, page
from quartermaster_site.jobs.models import Job

PER_PAGE = 100


@require_safe
@needs(Level.VIEW)
def issue_list(request: Request) -> HttpResponse:
    query = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    level = request.GET.get("level", "")
    level = level if level in LEVELS else ""
    found = selectors.issues(level=level).filter(_containing(query))
    shown = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "findings": [finding_row(finding) for finding in shown],
        "page": shown,
        "filters": {"q": query, "level": level},
        "chips": _chips(query, level),
        "filtered": bool(query or level),
        "plans": plan_lines(selectors.troubled_plans()),
    }
    if not shown.paginator.count:
        last = Job.objects.filter(kind="scan", finished_at__isnull=False).values_list("pk", flat=True).first()
        context["last_scan"] = last
    return page(request, "issues/issue_list.html", context, fragments=["issues"])


def _containing(query: str) -> Q:
    wanted = Q()
    for word in query.split()[:8]:
        wanted &= Q(path__icontains=word) | Q(text__icontains=word) | Q(kind__icontains=word)
    return wanted


def _chips(query: str, level: str) -> list[dict[str, object]]:
    """One chip per severity with its count, under the text filter."""
    counts = dict(Finding.objects.filter(_containing(query)).order_by().values_list("level").annotate(n=Count("pk")))
    chips: list[dict[str, object]] = []
    for slug, text in (("", "all"), *((slug, f"{look[1]}s") for slug, look in LEVELS.items())):
        parts = {"q": query, "level": slug}
        address = urlencode({name: value for name, value in parts.items() if value})
        count = counts.get(slug, 0) if slug else sum(counts.values())
        url = f"{reverse('models:issue-list')}{'?' if address else ''}{address}"
        chips.append({"text": text, "count": count, "url": url, "on": slug == level})
    return chips
