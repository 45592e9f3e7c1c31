"""Looking through the folders of a host to pick a path for a form."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpus_app.selectors import host_for
from models_app import services
from models_app.pages.browse_page import PURPOSES, listing_of, start_path
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.errors import NotFound, Refused
from quartermaster_site.http import STOP_POLLING, Request, go_to, local_path, page, wants_fragment
from quartermaster_site.jobs.models import Job


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Level.MANAGE)
def host_browse(request: Request, slug: str) -> HttpResponse:
    """POST asks the host what lies in a folder, GET shows the answer; picking leads to `back` with `path`."""
    host = host_for(request.user, slug)
    asked = request.POST if request.method == "POST" else request.GET
    purpose, back = asked.get("for", ""), local_path(request, asked.get("back", ""), default="")
    if purpose not in PURPOSES or not back:
        raise NotFound("This page is reached from the form that a path is picked for.")
    here = f"{reverse('models:host-browse', args=[slug])}?{urlencode({'for': purpose, 'back': back})}"
    problem, typed = "", asked.get("path", "").strip()
    if request.method == "POST":
        try:
            started = services.start_browse(
                host=host, path=typed or start_path(host.os_family), actor=actor_of(request), purpose=purpose
            )
        except Refused as error:
            problem = str(error)
        else:
            return go_to(request, f"{here}&job={started.job.pk}")
    job = _job(slug, request.GET.get("job", "")) if not problem else None
    waiting = job is not None and not job.is_finished
    context = {
        "host": host,
        "purpose": purpose,
        "heading": PURPOSES[purpose][0],
        "back": back,
        "here": f"{here}&job={job.pk}" if job else here,
        "job": job,
        "waiting": waiting,
        "listing": listing_of(job, purpose=purpose, back=back) if job and job.result else None,
        "typed": typed or (job.inputs.get("path", "") if job else "") or start_path(host.os_family),
        "problem": problem or (job.error if job else ""),
    }
    status = 422 if problem else STOP_POLLING if wants_fragment(request) and not waiting else 200
    return page(request, "hosts/host_browse.html", context, fragments=["listing"], status=status)


def _job(slug: str, number: str) -> Job | None:
    """The question to this host with this number; None where none was asked yet."""
    if not number:
        return None
    if not number.isdecimal() or len(number) > 12:
        raise NotFound("There is no such listing.")
    return get_object_or_404(Job, pk=int(number), kind="browse", host__slug=slug)
