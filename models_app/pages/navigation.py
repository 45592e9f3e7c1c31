"""The navigation of every page: what there is, which part the page belongs to, and counts beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from gpus_app.models import Host
from quartermaster_site.access.permissions import Level, may

_ALSO = {"models:policy-list": ("/access/explain/",)}
"""Pages elsewhere that belong to an item."""


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
class Navigation:
    """`hosts` carry the counts of the frame, of what the person may see; `host` is the one that the page is about."""

    request: HttpRequest
    hosts: Sequence[Host]
    host: Host | None

    def groups(self) -> tuple[NavGroup, ...]:
        """Everything that this person may see."""
        host = self.host
        models, findings, running = (
            sum(getattr(item, name) for item in self.hosts) for name in ("model_count", "finding_count", "job_count")
        )
        config = [self._item("Config file", "models:config-show", host.slug, key="c")] if host else []
        if host and may(self.request.user, Level.EDIT, host):
            config.append(self._item("Import", "models:import-list", host.slug))
        return (
            NavGroup("", "top", (self._item("Overview", "models:overview", key="o"),)),
            NavGroup(
                "Library",
                "library",
                (
                    self._item("Models", "models:model-list", key="m", count=models, unit="models"),
                    self._item("Components", "models:component-list"),
                    self._item("Issues", "models:issue-list", key="i", count=findings, unit="open", urgent=True),
                ),
            ),
            NavGroup("Config", "config", tuple(config)),
            NavGroup(
                "Machines",
                "machines",
                (
                    self._item("Hosts", "models:host-list", key="h"),
                    *([self._item("Router", "models:router-show", host.slug)] if host else []),
                    *([self._item("Voices", "models:voice-list", host.slug)] if host else []),
                    self._item("Jobs", "jobs:job-list", key="j", count=running, unit="running"),
                ),
            ),
            *self._administration(),
        )

    def _administration(self) -> tuple[NavGroup, ...]:
        if not may(self.request.user, Level.MANAGE):
            return ()
        items = (
            self._item("API keys", "models:key-list"),
            self._item("Users", "access:person-list"),
            self._item("Groups", "access:group-list"),
            self._item("Policies", "models:policy-list"),
            self._item("Network", "access:network"),
            self._item("Audit log", "access:audit-log"),
        )
        return (NavGroup("Access", "access", items),)

    def _item(
        self, title: str, name: str, *args: str, key: str = "", count: int = 0, unit: str = "", urgent: bool = False
    ) -> NavItem:
        url = reverse(name, args=args)
        path = self.request.path
        parts = url.strip("/").split("/")
        base = f"/{'/'.join(parts[: 2 if parts[0] == 'access' else 1])}/"
        current = path == "/" if url == "/" else path.startswith((base, *_ALSO.get(name, ())))
        return NavItem(title, url, current, key, count, unit, urgent)
