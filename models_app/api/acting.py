"""What scripts may have done: previews, scans, plans, publishing."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from gpus_app import services as gpu_services
from gpus_app.selectors import host_for
from models_app import convert, selectors, services
from models_app.api import schemas
from models_app.api.reading import job_out, plans_out, row_of
from models_app.models import Row
from models_app.services.writing import start_write
from models_app.whatif_form import Limits, WhatIfForm
from quartermaster_site.access.audit import actor_of
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Busy, Refused
from quartermaster_site.rate import RateLimit

router = Router()
PREVIEWS = RateLimit(per_second=5, burst=20)
"""For each person, as on the pages."""


@router.post("/models/{number}/preview/", response=list[schemas.PlanOut])
def model_preview(request: HttpRequest, number: int, asked: schemas.PreviewIn) -> list[dict[str, Any]]:
    """The plans that these values would give, laid over what is stored. Nothing is stored."""
    require(request.user, Level.VIEW)
    wait = PREVIEWS.wait_seconds(str(request.user.pk))
    if wait:
        raise Busy("Too many previews at once.", wait_seconds=max(1, round(wait)))
    row = row_of(request, number)
    form = _form(row, asked.values)
    facts = services.host_facts(row.host)
    override = form.override(services.stored_override(facts, row))
    plans = services.preview_plan(row=row, override=override, facts=facts).plans
    return plans_out(plans, row, request.user, " ".join(map(str, asked.values.values())))


def _form(row: Row, values: dict[str, Any]) -> WhatIfForm:
    """The valid what-if form of these values. Raises Refused with a message per key."""
    header = convert.header_lookup(row.host, [row.path])(row.path)
    if header is None:
        raise Refused("This model has no header that can be planned.")
    texts = {key: _text(value) for key, value in values.items()}
    form = WhatIfForm(texts, limits=Limits.of(header), automatic={})
    problems = {
        key[: schemas.MOST_NAME]: f"One of {', '.join(form.fields)}." for key in values if key not in form.fields
    }
    if not form.is_valid():
        problems |= {key or "values": " ".join(map(str, messages)) for key, messages in form.errors.items()}
    if problems:
        raise Refused("Some values cannot be used.", fields=problems)
    return form


def _text(value: Any) -> str:
    """As a browser would send it."""
    if isinstance(value, bool):
        return "on" if value else ""
    return str(value)


@router.post("/hosts/{slug}/scan/", response={202: schemas.JobOut})
def host_scan(request: HttpRequest, slug: str) -> Status[dict[str, Any]]:
    """Scan the folders of a host; the job that is running already where there is one."""
    require(request.user, Level.VIEW)
    started = services.start_scan(host=host_for(request.user, slug, Level.OPERATE), actor=actor_of(request))
    return Status(202, job_out(started.job, request.user))


@router.post("/hosts/{slug}/plan/", response={202: schemas.JobOut})
def host_plan(request: HttpRequest, slug: str) -> Status[dict[str, Any]]:
    """Plan and render a host again."""
    require(request.user, Level.VIEW)
    started = gpu_services.request_plan(host=host_for(request.user, slug, Level.OPERATE), actor=actor_of(request))
    return Status(202, job_out(started.job, request.user))


@router.post("/hosts/{slug}/publish/", response={202: schemas.JobOut})
def host_publish(request: HttpRequest, slug: str, asked: schemas.PublishIn) -> Status[dict[str, Any]]:
    """Write a revision to the host, with every check that the Review page makes; a foreign file is never replaced."""
    require(request.user, Level.VIEW)
    revision = selectors.get_revision(host_for(request.user, slug, Level.OPERATE), asked.revision)
    started = start_write(
        revision=revision,
        message=asked.message,
        seen_path=asked.path,
        typed_slug=asked.slug,
        confirmed=asked.confirm,
        actor=actor_of(request),
    )
    return Status(202, job_out(started.job, request.user))
