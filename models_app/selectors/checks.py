"""Checks against llama.cpp as pages ask for them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from gpus_app.models import Host
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
    checks = Verification.objects.filter(row=row).select_related("checked_by", "program")
    program = CheckProgram.objects.filter(host=row.host, server=plan.argv[0]).first()
    build = Q(build=program.build) if program else Q()
    jobs = Job.objects.filter(kind=CHECK_KIND, host=row.host, object_type=SUBJECT, object_id=str(row.pk))
    launch = launch_digest(row, plan)
    return PlanChecks(
        server=plan.argv[0],
        launch=launch,
        program=program,
        current=checks.filter(build, launch=launch).first(),
        newest=checks.first(),
        job=jobs.defer("inputs", "log").order_by("-id").first(),
        keeps_extra_free=check_settings_of(row.host).keeps_extra_free,
    )


def is_looking(host: Host) -> bool:
    """Whether the host is searching for programs right now."""
    return Job.objects.filter(kind=FIND_KIND, host=host, state__in=UNFINISHED).exists()
