"""What surrounds every page: navigation, counts and the status strip of the chosen host.

The context processor hands out one lazy object: a fragment that prints none of it costs no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Finding, Revision, Row
from quartermaster_site.access.models import Account
from quartermaster_site.figures import age
from quartermaster_site.jobs.models import UNFINISHED, Job

WORKER_STATES = {
    "online": ("ok", "online", "ok"),
    "late": ("warn", "late", "wait"),
    "offline": ("bad", "offline", "off"),
    "paused": ("", "paused", "lock"),
    "never": ("", "never seen", "idle"),
}
"""Host state -> tone, word, icon."""


@dataclass(frozen=True, slots=True)
class NavItem:
    title: str
    url: str
    current: bool
    key: str = ""
    count: int = 0
    unit: str = ""
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class NavGroup:
    title: str
    slug: str
    items: tuple[NavItem, ...]


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


def worker_state(host: Host) -> WorkerState:
    """The worker of a host as shape, colour and words."""
    tone, word, shape = WORKER_STATES[host.state]
    seen = "" if host.last_seen_at is None else f"{age((timezone.now() - host.last_seen_at).total_seconds())} ago"
    return WorkerState(tone, word, shape, seen)


class Strip:
    """The six slots under the page head; a slot that has nothing to say stays, with a dash."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    @cached_property
    def _hosts(self) -> list[Host]:
        return list(Host.objects.all())

    @cached_property
    def host(self) -> Host | None:
        chosen = getattr(self.request, "chosen_host", None) or self.request.session.get("host")
        return next((host for host in self._hosts if host.slug == chosen), self._hosts[0] if self._hosts else None)

    @property
    def many_hosts(self) -> bool:
        return len(self._hosts) > 1

    @cached_property
    def worker(self) -> WorkerState | None:
        return worker_state(self.host) if self.host else None

    @cached_property
    def config(self) -> ConfigState | None:
        """Whether the newest planned text is on the host already."""
        if self.host is None:
            return None
        newest = Revision.objects.filter(host=self.host).only("number", "state", "sha256").first()
        if newest is None:
            return None
        url = reverse("models:config-show", args=[self.host.slug])
        if newest.state == Revision.State.BLOCKED:
            return ConfigState("blocked", url, urgent=True)
        if newest.sha256 == self.host.written_sha256:
            return ConfigState(f"rev {newest.number} written", url, urgent=False)
        return ConfigState(f"rev {newest.number} not written", url, urgent=newest.state != Revision.State.WRITING)

    @cached_property
    def running_jobs(self) -> int:
        return Job.objects.filter(state__in=UNFINISHED).count()


class Shell:
    """Everything around the content of a page."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    @cached_property
    def strip(self) -> Strip:
        return Strip(self.request)

    @cached_property
    def account(self) -> Account | None:
        user = getattr(self.request, "user", None)
        if user is None or not user.is_authenticated:
            return None
        try:
            return user.account
        except Account.DoesNotExist:
            return None

    @property
    def role(self) -> str:
        return self.account.get_role_display().lower() if self.account else "viewer"

    @property
    def theme(self) -> str:
        """`light`, `dark`, or empty to follow the system."""
        return self.account.theme if self.account and self.account.theme != "auto" else ""

    @cached_property
    def version(self) -> str:
        try:
            return version("quartermaster")
        except PackageNotFoundError:
            return "development"

    @cached_property
    def navigation(self) -> tuple[NavGroup, ...]:
        models = Row.objects.values("host", "model_key", "base_id").distinct().count()
        findings = Finding.objects.exclude(level="info").count()
        running = self.strip.running_jobs
        host = self.strip.host
        config = [self._item("Config file", "models:config-show", host.slug, key="c")] if host else []
        return (
            NavGroup("", "top", (self._item("Overview", "models:overview", key="o"),)),
            NavGroup(
                "Library",
                "library",
                (
                    self._item("Models", "models:model-list", key="m", count=models, unit="models"),
                    self._item("Issues", "models:issue-list", key="i", count=findings, unit="open", urgent=True),
                ),
            ),
            NavGroup("Config", "config", tuple(config)),
            NavGroup(
                "Machines",
                "machines",
                (
                    self._item("Hosts", "models:host-list", key="h"),
                    self._item("Jobs", "jobs:job-list", key="j", count=running, unit="running"),
                ),
            ),
        )

    def _item(
        self, title: str, name: str, *args: str, key: str = "", count: int = 0, unit: str = "", urgent: bool = False
    ) -> NavItem:
        url = reverse(name, args=args)
        path = self.request.path
        base = f"/{url.strip('/').split('/')[0]}/" if url != "/" else "/"
        current = path == "/" if url == "/" else path.startswith(base)
        return NavItem(title, url, current, key, count, unit, urgent)


def shell(request: HttpRequest) -> dict[str, Shell]:
    """Context processor."""
    return {"shell": Shell(request)}
