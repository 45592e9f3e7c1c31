"""Jobs: the list, one job with its live panel, cancel and run again."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.http import STOP_POLLING, Request, go_to, page, wants_fragment
from quartermaster_site.jobs import kinds, selectors, services
from quartermaster_site.jobs.models import State
from quartermaster_site.jobs.pages import job_rows, job_view, under_way
from quartermaster_site.jobs.sight import job_sight

PER_PAGE = 50
STATE_FILTERS = {"": "all", "unfinished": "unfinished", State.FAILED.value: "failed", State.LOST.value: "lost"}


@require_GET
@needs(Level.VIEW)
def job_list(request: HttpRequest) -> HttpResponse:
    """All jobs, newest first; polls while one of the shown is unfinished."""
    # No text in PostgreSQL may hold a NUL, not even one that is only compared.
    state, kind, host = (request.GET.get(name, "").replace("\x00", "") for name in ("state", "kind", "host"))
    state = state if state in STATE_FILTERS else ""
    mine = request.GET.get("mine") == "1"
    user = cast(Request, request).user
    jobs = selectors.jobs(
        user,
        state=state,
        kind=kind if kind in kinds.BY_SLUG else "",
        host=host,
        mine_of=user if mine else None,
    )
    shown = Paginator(jobs, PER_PAGE).get_page(request.GET.get("page"))
    unfinished = any(not job.is_finished for job in shown)
    context = {
        "rows": job_rows(shown, job_sight(user)),
        "page": shown,
        "unfinished": unfinished,
        "chips": _chips(state, mine, {"kind": kind, "host": host}),
        "kinds": [(kind.slug, kind.label) for kind in kinds.KINDS if kind.listed],
        "state": state,
        "kind": kind,
        "host": host,
        "mine": mine,
        "filtered": bool(state or kind or host or mine),
    }
    polled = wants_fragment(request) and not unfinished
    return page(request, "jobs/job_list.html", context, fragments=["job-rows"], status=STOP_POLLING if polled else 200)


def _chips(state: str, mine: bool, others: dict[str, str]) -> list[dict[str, object]]:
    """Links to states and to one's own jobs; they keep the `others` that are chosen."""

    def chip(text: str, on: bool, **chosen: str) -> dict[str, object]:
        query = urlencode({name: value for name, value in {**chosen, **others}.items() if value})
        return {"text": text, "url": f"{reverse('jobs:job-list')}{'?' if query else ''}{query}", "on": on}

    chips = [chip(text, slug == state and not mine, state=slug) for slug, text in STATE_FILTERS.items()]
    return [*chips, chip("mine", mine, mine="1")]


@require_GET
@needs(Level.VIEW)
def job_show(request: HttpRequest, pk: int) -> HttpResponse:
    """One job; its panel alone for htmx, with 286 once there is nothing left to poll for.

    The panel brings the log along when that has changed: whoever reads it keeps their place meanwhile.
    """
    user = cast(Request, request).user
    job, sight = selectors.get_job(pk, user), job_sight(user)
    may_cancel, may_retry = services.may_cancel(user, job), services.may_retry(user, job)
    view, fragment = job_view(job, sight, may_cancel=may_cancel, may_retry=may_retry), wants_fragment(request)
    seen = fragment and not job.is_finished and request.GET.get("log") == view.log_mark
    context = {"job": job, "view": view, "is_fragment": fragment, "log_is_seen": seen}
    status = STOP_POLLING if fragment and job.is_finished else 200
    return page(request, "jobs/job_detail.html", context, fragments=["job-panel"], status=status)


@require_POST
@needs(Level.VIEW)
def job_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    services.cancel_job(job=selectors.get_job(pk, cast(Request, request).user), actor=actor_of(request))
    return go_to(request, reverse("jobs:job-show", args=[pk]))


@require_POST
@needs(Level.VIEW)
def job_retry(request: HttpRequest, pk: int) -> HttpResponse:
    started = services.retry_job(job=selectors.get_job(pk, cast(Request, request).user), actor=actor_of(request))
    if not started.created:
        messages.info(request, under_way(started.job))
    return go_to(request, reverse("jobs:job-show", args=[started.job.pk]))
