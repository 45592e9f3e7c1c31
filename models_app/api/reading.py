"""Questions: hosts, models with their plans, jobs, texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django.db.models import Prefetch
from django.http import HttpRequest
from ninja import Query, Router, Schema

from gpus_app.models import Host
from gpus_app.selectors import host_budget, host_for, hosts
from models_app import selectors, services
from models_app.api import schemas
from models_app.core.catalog import Plan
from models_app.models import Revision, Row, StoredPlan
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.fleet import newest_revisions
from models_app.selectors.listing import ModelFilter, filtered
from models_app.selectors.sight import HostSight, require_whole, sees_profile, visible
from quartermaster_site.access.permissions import Level, may, require
from quartermaster_site.access.redaction import redact_lines
from quartermaster_site.errors import NotFound
from quartermaster_site.jobs import selectors as job_selectors
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.sight import job_sight

router = Router()
MOST = 500
MAX_OFFSET = 10**9


def paging(offset: int, limit: int) -> tuple[int, int]:
    """Both within what a database takes."""
    return min(max(offset, 0), MAX_OFFSET), min(max(limit, 1), MOST)


@router.get("/hosts/", response=list[schemas.HostOut])
def host_list(request: HttpRequest) -> list[dict[str, Any]]:
    """The hosts that you may see."""
    require(request.user, Level.VIEW)
    newest, written = newest_revisions(written=False), newest_revisions(written=True)
    return [host_out(host, newest.get(host.pk), written.get(host.pk)) for host in visible(request.user, hosts())]


@router.get("/hosts/{slug}/", response=schemas.HostOut)
def host_show(request: HttpRequest, slug: str) -> dict[str, Any]:
    """One host."""
    require(request.user, Level.VIEW)
    host = host_for(request.user, slug)
    return host_out(host, selectors.latest_candidate(host), selectors.latest_written(host))


@router.get("/hosts/{slug}/revisions/", response=list[schemas.RevisionOut])
def revision_list(request: HttpRequest, slug: str, limit: int = 20) -> list[dict[str, Any]]:
    """The newest texts of a host's router file, without the texts."""
    require(request.user, Level.VIEW)
    _, limit = paging(0, limit)
    host = host_for(request.user, slug)
    sight = EntrySight(request.user, host)
    newest = selectors.revisions(host).defer("text", "summary")[:limit]
    return [revision_out(revision, sight) for revision in newest]


@router.get("/hosts/{slug}/revisions/{number}/", response=schemas.RevisionTextOut)
def revision_show(request: HttpRequest, slug: str, number: int) -> dict[str, Any]:
    """One text; keys are placeholders, and other secrets are masked for all but administrators."""
    require(request.user, Level.VIEW)
    if not 0 < number < 1 << 31:
        raise NotFound("There is no such revision.")
    host = host_for(request.user, slug)
    require_whole(request.user, host)
    revision = selectors.get_revision(host, number)
    text = revision.text if may(request.user, Level.MANAGE) else redact_lines(revision.text)
    return revision_out(revision, EntrySight(request.user, host)) | {"text": text}


class ModelQuery(Schema):
    """Which models: words in `q`, a host, a category (`image`) and a state, as on the page."""

    q: str = ""
    host: str = ""
    category: str = ""
    state: str = ""
    offset: int = 0
    limit: int = 100


@router.get("/models/", response=schemas.ModelPageOut)
def model_list(request: HttpRequest, asked: Query[ModelQuery]) -> dict[str, Any]:
    """Model files with their stored plans, by host and id."""
    require(request.user, Level.VIEW)
    words = {name: getattr(asked, name).replace("\x00", "")[:200] for name in ("q", "host", "state")}
    found = filtered(ModelFilter(**words, cat=asked.category.replace("\x00", "")[:40]), request.user)
    offset, limit = paging(asked.offset, asked.limit)
    plans = Prefetch("plans", queryset=StoredPlan.objects.order_by("id"))
    rows = found.select_related("host").defer("found").prefetch_related(plans).order_by("host__slug", "served_id", "pk")
    return {
        "items": [model_out(row, request.user) for row in rows[offset : offset + limit]],
        "total": found.count(),
        "offset": offset,
    }


@router.get("/models/{number}/", response=schemas.ModelOut)
def model_show(request: HttpRequest, number: int) -> dict[str, Any]:
    """One model file with its stored plans."""
    require(request.user, Level.VIEW)
    return model_out(row_of(request, number), request.user)


@router.get("/models/{number}/plans/", response=list[schemas.PlanOut])
def model_plans(request: HttpRequest, number: int) -> list[dict[str, Any]]:
    """The plans as of now, computed from what is stored: commands, memory and reasons."""
    require(request.user, Level.VIEW)
    row = row_of(request, number)
    return plans_out(services.preview_plan(row=row).plans, row, request.user)


class JobQuery(Schema):
    """Which jobs: by kind (`scan`), state (`unfinished`, `failed`, `lost`) and host."""

    kind: str = ""
    state: str = ""
    host: str = ""
    offset: int = 0
    limit: int = 50


@router.get("/jobs/", response=schemas.JobPageOut)
def job_list(request: HttpRequest, asked: Query[JobQuery]) -> dict[str, Any]:
    """Jobs, newest first."""
    require(request.user, Level.VIEW)
    words = {name: getattr(asked, name).replace("\x00", "")[:40] for name in ("kind", "state", "host")}
    found = job_selectors.jobs(request.user, **words)
    offset, limit = paging(asked.offset, asked.limit)
    items = [job_out(job, request.user) for job in found[offset : offset + limit]]
    return {"items": items, "total": found.count(), "offset": offset}


@router.get("/jobs/{number}/", response=schemas.JobOut)
def job_show(request: HttpRequest, number: int) -> dict[str, Any]:
    """One job; ask again until `finished_at` is set."""
    require(request.user, Level.VIEW)
    if not 0 < number < 1 << 62:
        raise NotFound("There is no such job.")
    return job_out(job_selectors.get_job(number, request.user), request.user)


def row_of(request: HttpRequest, number: int) -> Row:
    """A row with what a plan needs of its host. Raises NotFound."""
    if not 0 < number < 1 << 62:
        raise NotFound("There is no such model.")
    return selectors.get_row(number, request.user)


def host_out(host: Host, newest: Revision | None, written: Revision | None) -> dict[str, Any]:
    budget = host_budget(host)
    plain = ("slug", "name", "state", "last_seen_at", "publish_path", "ram_total_bytes")
    return {name: getattr(host, name) for name in plain} | {
        "dialect": host.publish_dialect,
        "vram_target_bytes": sum(budget.device_bytes),
        "ram_limit_bytes": budget.ram_bytes,
        "devices": [
            {name: getattr(device, name) for name in schemas.DeviceOut.model_fields} for device in host.devices.all()
        ],
        "newest_revision": newest.number if newest else None,
        "written_revision": written.number if written else None,
    }


def revision_out(revision: Revision, sight: EntrySight) -> dict[str, Any]:
    """A text as a person sees it, without findings that name hidden models."""
    found = [item for item in revision.findings if not sight.names_hidden(str(item))]
    return {name: getattr(revision, name) for name in schemas.RevisionOut.model_fields} | {"findings": found}


def model_out(row: Row, user: Any) -> dict[str, Any]:
    """A model with the stored plans of those of its entries that a person sees."""
    plain = ("served_id", "model_class", "architecture", "quant", "path", "size_bytes", "state", "state_reason")
    stored = cast("list[StoredPlan]", list(row.plans.all()))
    return {name: getattr(row, name) for name in plain} | {
        "id": row.pk,
        "host": row.host.slug,
        "plans": [_summary(plan) for plan in stored if sees_profile(user, row, plan.profile_id)],
    }


def _summary(plan: StoredPlan) -> dict[str, Any]:
    names = [name for name in schemas.PlanSummaryOut.model_fields if name != "placement"]
    return {name: getattr(plan, name) for name in names} | {"placement": plan.placement_text}


def plans_out(plans: Iterable[Plan], row: Row, user: Any, typed: str = "") -> list[dict[str, Any]]:
    """The plans of a model as a person sees them; `typed` is what they asked with."""
    sight = HostSight(user, row.host_id)
    return [plan_out(sight.plan(plan, typed)) for plan in plans if sees_profile(user, row, plan.profile_id)]


def plan_out(plan: Plan) -> dict[str, Any]:
    """A plan of the core as the API gives it."""
    plain = (
        "profile_id",
        "profile",
        "engine",
        "verdict",
        "est_vram_bytes",
        "est_ram_bytes",
        "target_bytes",
        "skip_reason",
    )
    placement = plan.placement
    return {name: getattr(plan, name) for name in plain} | {
        "placement": {name: getattr(placement, name) for name in schemas.PlacementOut.model_fields}
        if placement
        else None,
        "terms": [{name: getattr(term, name) for name in schemas.TermOut.model_fields} for term in plan.terms],
        "argv": list(plan.argv),
        "reasons": [reason.text for reason in plan.reasons],
        "warnings": list(plan.warnings),
        "suggestions": list(plan.suggestions),
    }


def job_out(job: Job, user: Any) -> dict[str, Any]:
    """A job as a person sees it: what may name hidden models is empty."""
    whole = job_sight(user).is_whole(job)
    plain = ("kind", "state", "state_reason", "phase", "done", "total", "error", "advice")
    times = ("created_at", "started_at", "finished_at")
    unseen = {} if whole else {"error": "", "advice": "", "done": 0, "total": None}
    return {name: getattr(job, name) for name in (*plain, *times)} | {
        "id": job.pk,
        "host": job.host.slug if job.host else "",
        "subject": job.object_label if whole else "",
        **unseen,
    }
