"""Hosts with their models, jobs and texts: the overview, a host's page, the config page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery, prefetch_related_objects

from gpus_app.models import Device, Host
from gpus_app.selectors import hosts
from models_app.models import Finding, Revision, Root, Row, StoredPlan
from models_app.selectors.details import issues
from models_app.selectors.listing import PLAN_WARNS
from models_app.selectors.sight import PROFILES, seen_rows, visible
from quartermaster_site.access.grants import ROWS, grants_of
from quartermaster_site.errors import NotFound
from quartermaster_site.jobs.models import UNFINISHED, Job, State
from quartermaster_site.jobs.sight import job_sight

FILE_OF_OTHERS = ("ForeignFile", "Drift")
"""Kinds of error of a write that a person may decide to go on after."""


@dataclass(frozen=True, slots=True)
class LargestPlan:
    """The plan that takes most of one kind of memory; 0 bytes where there is none."""

    size_bytes: int = 0
    profile_id: str = ""
    row_id: int = 0
    model_class: str = "llm"

    @property
    def keeps_headroom(self) -> bool:
        """Plans of chat models count the room that they keep free; the figures of other classes do not."""
        return self.model_class == "llm"


@dataclass(frozen=True, slots=True)
class LargestPlans:
    """Of the plans that fit, with layers in RAM or not."""

    vram: LargestPlan = LargestPlan()
    ram: LargestPlan = LargestPlan()


@dataclass(frozen=True, slots=True)
class HostCard:
    """One host on the overview."""

    host: Host
    devices: Sequence[Device]
    models: int
    served: int
    with_warnings: int
    not_served: int
    offline: int
    last_scan: Job | None
    roots: Sequence[Root]
    candidate: Revision | None
    written: Revision | None
    running: Sequence[Job]
    largest: LargestPlans = LargestPlans()

    @property
    def is_unwritten(self) -> bool:
        """The newest text differs from what was last written."""
        if self.candidate is None:
            return False
        return self.written is None or self.candidate.body_sha256 != self.written.body_sha256


def overview(user: Any, known: Sequence[Host] | None = None) -> list[HostCard]:
    """The hosts that a person sees, with figures of the models that they see, in a fixed number of queries. `known` are
    these hosts where the caller has them already.
    """
    everyone = visible(user, hosts() if known is None else known)
    prefetch_related_objects(everyone, "roots")
    counts = _row_counts(user)
    largest = largest_plans(user)
    candidates = newest_revisions(written=False)
    written = newest_revisions(written=True)
    scans = _last_scans()
    running: dict[int | None, list[Job]] = {}
    unfinished = job_sight(user).seen(Job.objects.filter(state__in=UNFINISHED))
    for job in unfinished.select_related("host").defer("inputs", "log", "result"):
        running.setdefault(job.host_id, []).append(job)
    return [
        HostCard(
            host=host,
            devices=list(host.devices.all()),
            roots=list(host.roots.all()),
            last_scan=scans.get(host.pk),
            candidate=candidates.get(host.pk),
            written=written.get(host.pk),
            running=running.get(host.pk, []),
            largest=largest.get(host.pk, LargestPlans()),
            **counts.get(host.pk, _NO_ROWS),
        )
        for host in everyone
    ]


_NO_ROWS: Mapping[str, int] = {"models": 0, "served": 0, "with_warnings": 0, "not_served": 0, "offline": 0}


def _row_counts(user: Any) -> dict[int, Mapping[str, int]]:
    """Models, not rows, would hide a quant that does not fit: counts are of rows.

    What waits for its first plan is not yet "not served".
    """
    away = Q(state__in=[Row.State.OFFLINE, Row.State.MISSING])
    planned = Q(plans__isnull=False, plans__skip_reason="")
    found = (
        seen_rows(user)
        .order_by()
        .values_list("host_id")
        .annotate(
            models=Count("id", distinct=True),
            served=Count("id", filter=planned, distinct=True),
            with_warnings=Count("id", filter=PLAN_WARNS, distinct=True),
            offline=Count("id", filter=away, distinct=True),
            judged=Count("id", filter=Q(plans__isnull=False), distinct=True),
        )
    )
    names = ("models", "served", "with_warnings", "offline", "not_served")
    return {
        host: dict(zip(names, (models, served, warned, offline, judged - served), strict=True))
        for host, models, served, warned, offline, judged in found
    }


def largest_plans(user: Any) -> dict[int, LargestPlans]:
    """Host -> its largest plans that a person sees, in two queries: which they are, and what they say.

    All columns in subqueries of the first would have the database sort the plans of each host for every column.
    """
    grants = grants_of(user)
    fitting = StoredPlan.objects.filter(row__host=OuterRef("pk"), verdict__in=("fits", "spills"))
    fitting = grants.seen(grants.seen(fitting, ROWS.behind("row")), PROFILES)
    most_vram, most_ram = (
        Subquery(fitting.order_by(f"-est_{kind}_bytes", "id").values("pk")[:1]) for kind in ("vram", "ram")
    )
    hosts_plans = Host.objects.order_by().annotate(vram=most_vram, ram=most_ram).values_list("pk", "vram", "ram")
    chosen = {pk: (vram, ram) for pk, vram, ram in hosts_plans if vram is not None}
    columns = ("pk", "est_vram_bytes", "est_ram_bytes", "profile_id", "row_id", "row__model_class")
    wanted = StoredPlan.objects.filter(pk__in={pk for pair in chosen.values() for pk in pair})
    found = {pk: facts for pk, *facts in wanted.values_list(*columns)}
    return {
        host: LargestPlans(_largest(found[vram], 0), _largest(found[ram], 1))
        for host, (vram, ram) in chosen.items()
        if vram in found and ram in found  # planning may have replaced them meanwhile
    }


def _largest(facts: Sequence[Any], size: int) -> LargestPlan:
    """Of the columns of a plan: its sizes in VRAM (0) and RAM (1), profile, row, class."""
    return LargestPlan(facts[size], *facts[2:])


def _last_scans() -> dict[int, Job]:
    newest = Job.objects.filter(kind="scan").order_by().values("host_id").annotate(last=Max("id")).values("last")
    jobs = Job.objects.filter(pk__in=newest).defer("inputs", "log")
    return {job.host_id: job for job in jobs if job.host_id is not None}


def newest_revisions(*, written: bool) -> dict[int, Revision]:
    """Host -> its newest text, or the one last written; without the text itself."""
    wanted = Revision.objects.filter(state=Revision.State.WRITTEN) if written else Revision.objects.all()
    newest = wanted.order_by().values("host_id").annotate(last=Max("id")).values("last")
    rows = Revision.objects.filter(pk__in=newest).defer("text")
    return {row.host_id: row for row in rows}


def attention(user: Any, limit: int = 20) -> Sequence[Finding]:
    """What needs somebody, the worst first."""
    return list(issues(user).exclude(level="info")[:limit])


def troubled_plans(user: Any) -> Sequence[tuple[str, str, str, int]]:
    """(slug, name of the host, verdict, number of rows) where plans spill, do not fit or cannot be judged."""
    wanted = StoredPlan.objects.filter(profile="base", verdict__in=("over", "unknown", "spills"))
    wanted = grants_of(user).seen(wanted, ROWS.behind("row"))
    counted = wanted.order_by().values_list("row__host__slug", "row__host__name", "verdict").annotate(n=Count("pk"))
    return sorted(counted, key=lambda item: (item[0], ("over", "unknown", "spills").index(item[2])))


def revisions(host: Host) -> QuerySet[Revision]:
    return Revision.objects.filter(host=host).select_related("author").defer("text").order_by("-number")


def get_revision(host: Host, number: int) -> Revision:
    """One text of a host with its number; NotFound."""
    row = Revision.objects.filter(host=host, number=number).select_related("host", "author").first()
    if row is None:
        raise NotFound(f"{host} has no revision {number}.")
    return row


def latest_candidate(host: Host) -> Revision | None:
    """The newest text of a host, written or not."""
    return Revision.objects.filter(host=host).select_related("host", "author").order_by("-number").first()


def latest_written(host: Host) -> Revision | None:
    found = Revision.objects.filter(host=host, state=Revision.State.WRITTEN).select_related("host", "author")
    return found.order_by("-number").first()


def refused_write(host: Host) -> Job | None:
    """The last write, where it stopped at a text of somebody else at the path that is set now."""
    last = Job.objects.filter(kind="publish", host=host).select_related("host", "started_by").first()
    if last is None or last.state != State.FAILED or last.error_kind not in FILE_OF_OTHERS:
        return None
    return last if last.inputs.get("path") == host.publish_path else None


def roots(host: Host) -> QuerySet[Root]:
    """The roots of a host."""
    return Root.objects.filter(host=host)
