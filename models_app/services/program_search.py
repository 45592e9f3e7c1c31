"""Asking a host which executables of known names it has; what it says is a proposal, and registers nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpus_app.models import Host
from models_app.core.launch.backends import kind_of
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import UNFINISHED, Job
from quartermaster_site.jobs.receiving import Receiver
from quartermaster_site.jobs.services import Started, start_job

KIND = "find_programs"
MAX_PROGRAMS = 64


@dataclass(frozen=True, slots=True)
class Proposal:
    """An executable that is there and is not registered."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Search:
    """The last search on a host. `job` is None where there was none."""

    job: Job | None
    proposals: tuple[Proposal, ...] = ()

    @property
    def is_running(self) -> bool:
        return self.job is not None and self.job.state in UNFINISHED


def start_program_search(*, host: Host, actor: Actor) -> Started:
    """Have the host look; the finished job's result is what it found."""
    require(actor.user, Level.MANAGE)
    return start_job(kind=KIND, host=host, actor=actor)


def last_search(host: Host) -> Search:
    """What the host found when it last looked, without what is registered by now."""
    job = Job.objects.filter(kind=KIND, host=host).order_by("-pk").first()
    if job is None:
        return Search(None)
    registered = {backend.path for backend in host.backends.all()}
    found = [Proposal(item["kind"], item["path"]) for item in job.result.get("programs", [])]
    return Search(job, tuple(item for item in found if item.path not in registered))


class ProgramSearchReceiver(Receiver):
    """What a host found. A search that was stopped says nothing."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        if partial:
            return {}
        programs = []
        for item in untrusted.items(data.get("programs", []), "programs", MAX_PROGRAMS):
            program = untrusted.mapping(item, "a program")
            kind = kind_of(untrusted.text(program.get("kind"), "kind", 16))
            path = untrusted.path(program.get("path"), "path")
            if kind is not None and path.isprintable():
                programs.append({"kind": kind.name, "path": path})
        return {"programs": programs}
