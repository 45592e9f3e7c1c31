"""Findings: files that are not served, and plans that need a look."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from models_app import selectors
from models_app.models import Finding
from models_app.pages.issue_list import CSV_COLUMNS, LEVELS, csv_row, finding_row
from models_app.pages.overview import plan_lines
from models_app.pages.shell import shell_of
from models_app.selectors.details import ACKNOWLEDGED
from models_app.selectors.sight import ABOUT_OTHERS, seen_findings, shown_findings
from models_app.services.acknowledging import acknowledge_finding
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.grants import grants_of
from quartermaster_site.access.permissions import Level, may, needs
from quartermaster_site.http import Request, go_to, local_path, page
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.sight import job_sight

PER_PAGE = 100
SEEN = "acknowledged"
"""Stands beside the severities: what somebody has seen and left as it is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which findings somebody asks for; "" is all of them."""

    q: str
    level: str
    host: str

    @classmethod
    def from_query(cls, values: QueryDict) -> Asked:
        q, level, host = (values.get(name, "").replace("\x00", "").strip()[:200] for name in ("q", "level", "host"))
        return cls(q, level if level in (*LEVELS, SEEN) else "", host)

    @property
    def query(self) -> str:
        """The question of an address that asks for these, "" where all are asked for."""
        address = urlencode({name: value for name, value in asdict(self).items() if value})
        return f"?{address}" if address else ""


@require_safe
@needs(Level.VIEW)
def issue_list(request: Request) -> HttpResponse:
    asked, user, hosts = Asked.from_query(request.GET), request.user, shell_of(request).hosts
    counts = _counts(user, asked)
    pages = Paginator(_found(user, asked), PER_PAGE)
    pages.count = counts[asked.level]
    shown = pages.get_page(request.GET.get("page"))
    rows = [
        finding_row(finding, may_operate=may(user, Level.OPERATE, finding.row or finding.host))
        for finding in shown_findings(user, shown)
    ]
    context = {
        "findings": rows,
        "page": shown,
        "filters": asked,
        "hosts": hosts if len(hosts) > 1 else (),
        "chips": _chips(counts, asked),
        "plans": plan_lines([line for line in selectors.troubled_plans(user) if asked.host in ("", line[0])]),
        "export_url": f"{reverse('models:issue-export')}{asked.query}",
        "may_acknowledge": any(row.may_operate for row in rows),
        "acknowledged": asked.level == SEEN,
    }
    if not shown.paginator.count:
        scans = job_sight(user).seen(Job.objects.filter(kind="scan", finished_at__isnull=False))
        context["last_scan"] = scans.values_list("pk", flat=True).first()
    return page(request, "issues/issue_list.html", context, fragments=["issues"])


def _found(user: Any, asked: Asked) -> QuerySet[Finding]:
    acknowledged = asked.level == SEEN
    level = "" if acknowledged else asked.level
    found = selectors.issues(user, host=asked.host, level=level, acknowledged=acknowledged)
    return found.filter(_containing(user, asked.q))


@require_safe
@needs(Level.VIEW)
def issue_export(request: Request) -> HttpResponse:
    """The same findings as a table for other programs."""
    found = _found(request.user, Asked.from_query(request.GET))
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="issues.csv"'
    table = csv.writer(response)
    table.writerow(CSV_COLUMNS)
    table.writerows(csv_row(finding) for finding in shown_findings(request.user, found.iterator()))
    return response


@require_POST
@needs(Level.VIEW)
def issue_acknowledge(request: Request, pk: int) -> HttpResponse:
    """Leaves a finding out of the lists until it says something else, or takes that back."""
    acknowledge_finding(pk=pk, seen=request.POST.get("off") != "1", actor=actor_of(request))
    return go_to(request, local_path(request, request.POST.get("next", ""), reverse("models:issue-list")))


def _containing(user: Any, query: str) -> Q:
    """Findings with all words. In a text that may name other files is not searched where some are hidden: that would
    tell that there is such a file.
    """
    wanted = Q()
    readable = ~Q(kind__in=ABOUT_OTHERS) if grants_of(user).hide_something else Q()
    for word in query.split()[:8]:
        wanted &= Q(path__icontains=word) | Q(readable, text__icontains=word) | Q(kind__icontains=word)
    return wanted


def _counts(user: Any, asked: Asked) -> Counter[str]:
    """How many findings there are under the other filters: open ones by severity, all of these as "", acknowledged."""
    found = seen_findings(user).filter(_containing(user, asked.q)).order_by()
    if asked.host:
        found = found.filter(host__slug=asked.host)
    counts = Counter[str]()
    for level, opened, seen in found.values_list("level").annotate(
        opened=Count("pk", filter=~ACKNOWLEDGED), seen=Count("pk", filter=ACKNOWLEDGED)
    ):
        counts += Counter({level: opened, "": opened, SEEN: seen})
    return counts


def _chips(counts: Counter[str], asked: Asked) -> list[dict[str, object]]:
    """One chip per severity with its count, under the other filters."""
    chips: list[dict[str, object]] = []
    words = (("", "all"), *((slug, f"{look[1]}s") for slug, look in LEVELS.items()), (SEEN, "acknowledged"))
    for slug, text in words:
        url = f"{reverse('models:issue-list')}{replace(asked, level=slug).query}"
        chips.append({"text": text, "count": counts[slug], "url": url, "on": slug == asked.level})
    return chips
