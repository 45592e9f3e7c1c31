"""Checks against llama.cpp as pages ask for them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from models_app.check_settings import check_settings_of
from models_app.core.catalog import Plan
from models_app.models import CheckProgram, Row, Verification
from models_app.services.check_facts import launch_digest
from models_app.services.checks import CHECK_KIND, FIND_KIND, SUBJECT
from quartermaster_site.jobs.models import UNFINISHED, Job


@dataclass(frozen=True, slots=True)
class PlanChecks:
    """What is known of one plan: the check of this very launch, else the newest of the model, and the last job."""

    server: str
    launch: str
    """Digest of the launch as it is planned now."""
    program: CheckProgram | None
    current: Verification | None
    newest: Verification | None
    job: Job | None
    is_looking: bool
    """The host is searching for the program right now."""
    keeps_extra_free: bool

    @property
    def shown(self) -> Verification | None:
        return self.current or self.newest


def plan_checks(row: Row, plan: Plan) -> PlanChecks | None:
    """None for a plan that llama-fit-params knows nothing about: another engine, or nothing that can be judged."""
    if plan.placement is None or plan.projection is None or plan.engine or not plan.argv:
        return None
    if plan.projection.engine == "classic":
        return None
    launch = launch_digest(row, plan)
    program = CheckProgram.objects.filter(host=row.host, server=plan.argv[0]).first()
    seen = list(Verification.objects.filter(row=row).select_related("checked_by"))
    same = (check for check in seen if check.launch == launch and (not program or check.build == program.build))
    jobs = _jobs(row)
    return PlanChecks(
        server=plan.argv[0],
        launch=launch,
        program=program,
        current=next(same, None),
        newest=seen[0] if seen else None,
        job=next((job for job in jobs if job.kind == CHECK_KIND), None),
        is_looking=any(job.kind == FIND_KIND for job in jobs),
        keeps_extra_free=check_settings_of(row.host).keeps_extra_free,
    )


def _jobs(row: Row) -> list[Job]:
    """The newest checks of a row, and what its host is searching for right now."""
    of_row = Q(kind=CHECK_KIND, object_type=SUBJECT, object_id=str(row.pk))
    looking = Q(kind=FIND_KIND, state__in=UNFINISHED)
    return list(Job.objects.filter(of_row | looking, host=row.host).defer("inputs", "log").order_by("-id")[:10])
