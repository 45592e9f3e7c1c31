"""What surrounds every page: navigation, counts and the status strip of the chosen host.

One lazy object per request, shared by the view and the templates: a fragment that prints none of it costs no query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Count, F, FilteredRelation, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, JSONObject
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.selectors import hosts
from models_app.core.export.drift import Case
from models_app.drift_rows import WORDS
from models_app.models import Revision, Root
from models_app.pages.drift_page import BY_HAND, STRIP_WORDS
from models_app.pages.navigation import NavGroup, Navigation
from models_app.router_rows import STALE_AFTER
from models_app.selectors.details import ACKNOWLEDGED
from models_app.selectors.sight import seen_findings, seen_rows, sees_all, visible
from quartermaster_site.access.grants import grants_of
from quartermaster_site.access.models import Account
from quartermaster_site.figures import ago
from quartermaster_site.jobs.kinds import UNLISTED
from quartermaster_site.jobs.models import UNFINISHED, Job
from quartermaster_site.jobs.sight import job_sight
from quartermaster_site.version import product_version

WORKER_STATES = {
    "online": ("ok", "online", "ok"),
    "late": ("warn", "late", "wait"),
    "offline": ("bad", "offline", "off"),
    "paused": ("", "paused", "lock"),
    "mismatch": ("bad", "other version", "bad"),
    "never": ("", "never seen", "idle"),
}
"""Host state -> tone, word, icon."""


@dataclass(frozen=True, slots=True)
class WorkerState:
    tone: str
    word: str
    shape: str
    note: str


@dataclass(frozen=True, slots=True)
class ConfigState:
    word: str
    url: str
    urgent: bool


@dataclass(frozen=True, slots=True)
class DriftState(ConfigState):
    note: str


def drift_state(host: Any) -> DriftState | None:
    """The drift of a host that carries the counts of the frame; not urgent where somebody has said "later"."""
    if not host.drift_case and not host.by_hand_since:
        return None
    url = reverse("models:config-drift", args=[host.slug])
    if host.by_hand_since:
        return DriftState(BY_HAND, url, urgent=False, note="")
    quiet = f"{host.drift_case}:{host.drift_sha256}" in (host.drift_later, host.drift_taken)
    note = f"The router's file {WORDS[Case(host.drift_case)]}."
    return DriftState(STRIP_WORDS[host.drift_case], url, urgent=not quiet, note=note)


def _number_of(rows: QuerySet[Any], counted: str = "pk") -> Coalesce:
    """How many of `rows` each host has, as a subquery."""
    per_host = rows.filter(host=OuterRef("pk")).order_by().values("host").annotate(n=Count(counted, distinct=True))
    return Coalesce(Subquery(per_host.values("n")), 0)


_REVISIONS = Revision.objects.filter(host=OuterRef("pk")).order_by("-number")
_FACTS = JSONObject(number="number", state="state", body="body_sha256")
_OF_HOSTS = {
    "last_scan_at": Subquery(
        Root.objects.filter(host=OuterRef("pk")).order_by("-last_scan_at").values("last_scan_at")[:1]
    ),
    "newest": Subquery(_REVISIONS.values(facts=_FACTS)[:1]),
    "written": Subquery(_REVISIONS.filter(state=Revision.State.WRITTEN).values(facts=_FACTS)[:1]),
    "pinned_number": F("publishing__pinned__number"),
    "drift_case": F("watch__case"),
    "drift_sha256": F("watch__sha256"),
    "drift_taken": F("watch__taken"),
    "drift_later": F("watch__later"),
    "by_hand_since": F("watch__by_hand_since"),
    "router_url": F("router__url"),
    "router_problem": F("router__problem"),
    "router_seen_at": F("router__seen_at"),
    "router_held": F("router__held"),
}
"""What has one row a host is joined: a subquery for each column would cost more than all the rest of the query."""


def _counts(user: Any) -> dict[str, Any]:
    """What the frame says of each host: of models, findings and jobs those that the person may see."""
    findings = seen_findings(user).exclude(level="info").exclude(ACKNOWLEDGED)
    unfinished = job_sight(user).seen(Job.objects.filter(state__in=UNFINISHED).exclude(kind__in=UNLISTED))
    # Django writes into a filtered relation, so it is made anew.
    watch = FilteredRelation("target_watch", condition=Q(target_watch__path=F("publish_path")))
    return {
        "watch": watch,
        **_OF_HOSTS,
        "model_count": _number_of(seen_rows(user), "model_key"),
        "finding_count": _number_of(findings),
        "job_count": _number_of(unfinished),
    }


def worker_state(host: Host) -> WorkerState:
    """The worker of a host as shape, colour and words."""
    agent = getattr(host, "agent", None)
    waits = host.state == "never" and agent is not None and agent.awaits_machine
    if waits:
        return WorkerState("", "waiting", "wait", "for its agent")
    tone, word, shape = WORKER_STATES[host.state]
    seen = "" if host.last_seen_at is None else ago(host.last_seen_at, timezone.now())
    if seen and host.paused:
        seen = f"heard {seen}"  # not since when it is paused
    return WorkerState(tone, word, shape, seen)


def config_state(host: Any) -> ConfigState | None:
    """Whether the newest planned text is on the host already, of a host that carries the facts of the frame."""
    newest: Mapping[str, Any] | None = getattr(host, "newest", None)
    if newest is None:
        return None
    number, state = newest["number"], newest["state"]
    written: Mapping[str, Any] | None = host.written
    if pinned := host.pinned_number:
        return ConfigState(f"pinned to rev {pinned}", reverse("models:config-history", args=[host.slug]), urgent=True)
    url = reverse("models:config-show", args=[host.slug])
    if state == Revision.State.BLOCKED:
        return ConfigState("blocked", url, urgent=True)
    if host.written_sha256 and written and newest["body"] == written["body"]:
        return ConfigState(f"rev {written['number']} written", url, urgent=False)
    if not host.publish_path:
        return ConfigState(f"rev {number}", url, urgent=False)
    review = reverse("models:config-review", args=[host.slug])
    if state == Revision.State.AWAITING:
        return ConfigState(f"rev {number} awaits approval", review, urgent=True)
    return ConfigState(f"rev {number} not written", review, urgent=state != Revision.State.WRITING)


class Strip:
    """The six slots under the page head; a slot that has nothing to say stays, with a dash."""

    def __init__(self, shell: Shell) -> None:
        self.host = shell.host
        self.is_whole = shell.host is not None and sees_all(shell.request.user, shell.host)
        self.many_hosts = len(shell.hosts) > 1
        self.unfinished_jobs = sum(host.job_count for host in shell.all_hosts)  # type: ignore[attr-defined]

    @property
    def worker(self) -> WorkerState | None:
        return worker_state(self.host) if self.host else None

    @property
    def config(self) -> ConfigState | None:
        return config_state(self.host) if self.host else None

    @property
    def drift(self) -> DriftState | None:
        """Whether the file on the host is another one than was written there last."""
        return drift_state(self.host) if self.host else None

    @property
    def router(self) -> ConfigState | None:
        """What the router has loaded, or that it cannot be asked."""
        host: Any = self.host
        if host is None or not host.router_url:
            return None
        url = reverse("models:router-show", args=[host.slug])
        if host.router_problem:
            return ConfigState("not reachable", url, urgent=True)
        if host.router_seen_at is None:
            return ConfigState("not asked yet", url, urgent=False)
        if timezone.now() - host.router_seen_at > STALE_AFTER:
            return ConfigState("not seen lately", url, urgent=False)
        if not self.is_whole:  # the number would count what is hidden
            return ConfigState("answers", url, urgent=False)
        return ConfigState(f"{host.router_held} loaded" if host.router_held else "nothing loaded", url, urgent=False)


class Shell:
    """Everything around the content of a page."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    @cached_property
    def all_hosts(self) -> list[Host]:
        """All hosts with their devices and settings, and every count of the frame, in three queries.

        Also those that are hidden, where single models of them may be seen: lists of models draw their scales.
        """
        return list(hosts().annotate(**_counts(self.request.user)))

    @cached_property
    def hosts(self) -> list[Host]:
        """The hosts that this person may see."""
        return visible(self.request.user, self.all_hosts)

    @cached_property
    def host(self) -> Host | None:
        """The host that this page is about: the one in its address, else the one looked at last, else the first."""
        match = self.request.resolver_match
        named = match.kwargs.get("slug") if match and match.namespace == "models" else None
        chosen = named or self.request.session.get("host")
        return next((host for host in self.hosts if host.slug == chosen), self.hosts[0] if self.hosts else None)

    @property
    def is_restricted(self) -> bool:
        """Whether policies may hide something from this person; it does not say that there is such a thing."""
        return grants_of(self.request.user).hide_something

    @cached_property
    def strip(self) -> Strip:
        return Strip(self)

    @cached_property
    def account(self) -> Account | None:
        user = getattr(self.request, "user", None)
        if user is None or not user.is_authenticated:
            return None
        account: Account | None = getattr(user, "account", None)
        return account

    @property
    def role(self) -> str:
        if getattr(self.request.user, "restricted_to_viewer", False):
            return "viewer here"
        return self.account.get_role_display().lower() if self.account else "viewer"

    @property
    def theme(self) -> str:
        """`light`, `dark`, or empty to follow the system."""
        return self.account.theme if self.account and self.account.theme != "auto" else ""

    @property
    def density(self) -> str:
        """`compact`, or empty for the usual one."""
        return self.account.density if self.account and self.account.density != "comfortable" else ""

    @property
    def version(self) -> str:
        return product_version()

    @cached_property
    def navigation(self) -> tuple[NavGroup, ...]:
        return Navigation(self.request, self.all_hosts, self.host).groups()


def remember_host(request: HttpRequest, host: Host) -> None:
    """The strip of later pages shows this host. An unchanged session is not written again."""
    if request.session.get("host") != host.slug:
        request.session["host"] = host.slug


def shell_of(request: HttpRequest) -> Shell:
    """The shell of a request, made on first use."""
    found: Shell | None = getattr(request, "_shell", None)
    if found is None:
        found = Shell(request)
        request._shell = found  # type: ignore[attr-defined]
    return found


def shell(request: HttpRequest) -> dict[str, Shell]:
    """Context processor."""
    return {"shell": shell_of(request)}
