"""Which jobs a person sees: those about models and hosts that policies do not hide from them."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat
from django.db.models.lookups import StartsWith

from gpus_app.models import Host
from models_app.models import Row, StoredPlan
from models_app.selectors.sight import sees_all
from quartermaster_site.access.grants import ROWS, Fields, grants_of
from quartermaster_site.jobs.models import Job

ROW, SPEECH, ROUTER = "row", "speech", "router"
"""Types of objects that are models: a row by its number, a speech server by its row's, an entry of a router by its id.
The other types are about whole hosts."""
LABELS = Fields(names=("object_label",), path="object_label")


class JobSightOf:
    """`quartermaster_site.jobs.sight.JobSight` of one person. Those from whom nothing is hidden cost no query."""

    def __init__(self, user: Any) -> None:
        self.user, self.grants = user, grants_of(user)
        self._whole: dict[int, bool] = {}

    def seen(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        if not self.grants.hide_something:
            return jobs
        hosts = self.grants.hosts()
        own_host = Q(host=None) | hosts | Q(started_by__isnull=False, started_by=self.user.pk)
        about_host = ~Q(object_type__in=(ROW, SPEECH, ROUTER)) & own_host
        return jobs.filter(about_host | self._of_rows() | self._of_speech() | self._of_routers(hosts))

    def _of_rows(self) -> Q:
        numbers = self.grants.seen(Row.objects.order_by()).annotate(number=Cast("pk", CharField())).values("number")
        return Q(object_type=ROW, object_id__in=numbers)

    def _of_speech(self) -> Q:
        """The number of the row is the first word of their object's."""
        about = ExpressionWrapper(OuterRef("object_id"), CharField())
        named = StartsWith(about, Concat(Cast("pk", CharField()), Value(" ")))
        rows = Row.objects.filter(named, model_class="tts").order_by()
        return Q(Exists(self.grants.seen(rows)), object_type=SPEECH)

    def _of_routers(self, hosts: Q) -> Q:
        """An entry that no plan knows is judged by its id alone."""
        plans = StoredPlan.objects.filter(row__host=OuterRef("host"), profile_id=OuterRef("object_label")).order_by()
        known = Exists(self.grants.seen(plans, ROWS.behind("row")))
        condition = self.grants.condition(LABELS)
        foreign = hosts & ~Q(Exists(plans)) & (Q() if condition is None else Q(condition))
        return Q(object_type=ROUTER) & (Q(known) | foreign)

    def is_whole(self, job: Job) -> bool:
        if job.host is None or job.object_type in (ROW, SPEECH):
            return True
        known = self._whole.get(job.host.pk)
        if known is None:
            known = self._whole[job.host.pk] = sees_all(self.user, job.host)
        return known

    def subject(self, job: Job) -> Row | Host | None:
        """The model that a job is about, else its host."""
        row = None
        if job.object_type in (ROW, SPEECH):
            row = Row.objects.filter(pk=job.object_id.partition(" ")[0], host=job.host_id).first()
        elif job.object_type == ROUTER:
            row = Row.objects.filter(host=job.host_id, plans__profile_id=job.object_label).first()
        return row or job.host
