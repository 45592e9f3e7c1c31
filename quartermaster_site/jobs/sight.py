"""Which jobs a person sees, and of which also what they say. What jobs are about is known above: that side tells."""

from __future__ import annotations

from typing import Any, Protocol

from django.db.models import QuerySet
from django.utils.module_loading import import_string

from quartermaster_site.access.permissions import Scoped
from quartermaster_site.jobs.models import Job

SIGHT = "models_app.selectors.job_sight.JobSightOf"
"""Made with a person."""


class JobSight(Protocol):
    """What one person sees of jobs, for one request."""

    def seen(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """Those of a query that are about nothing hidden."""

    def is_whole(self, job: Job) -> bool:
        """Whether its label, log, result and error may be shown: in those of a host any of its models may be named."""

    def subject(self, job: Job) -> Scoped | None:
        """The model or the host that a job is about."""


class Everything:
    """Of those who act for nobody, and of the first-run wizard."""

    def seen(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        return jobs

    def is_whole(self, job: Job) -> bool:
        return True

    def subject(self, job: Job) -> Scoped | None:
        host: Scoped | None = job.host
        return host


def job_sight(user: Any) -> JobSight:
    found: JobSight = import_string(SIGHT)(user)
    return found
