"""The machine behind a host: how it is enrolled, and what somebody should know about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils import timezone

from gpus_app.agents import MOST_SKEW_SECONDS, second_agent, version_problem
from gpus_app.models import Agent, Host
from models_app.models import Root
from models_app.pages.live_page import disk_notes
from models_app.pages.shell import WorkerState, worker_state
from quartermaster_site.figures import ago, duration


@dataclass(frozen=True, slots=True)
class Machine:
    """What the page of a machine prints."""

    worker: WorkerState
    enrolled: bool
    """By a code; else the worker runs beside the server, or nobody has enrolled yet."""
    enrolled_at: datetime | None
    address: str
    own_account: bool
    code_until: datetime | None
    """While a code waits for its machine."""
    code_ended: datetime | None
    """Since when a code is over that nobody used."""
    heard_at: datetime | None
    attempt: str
    next_url: str
    """Where to name its folders, once it has arrived and has none."""
    notes: tuple[str, ...]

    @property
    def seen(self) -> str:
        """What else on the page depends on: when this changes, all of it is asked for anew."""
        return f"{self.worker.word}-{self.enrolled:d}"


def machine_of(host: Host) -> Machine:
    agent: Agent | None = getattr(host, "agent", None)
    enrolled = agent is not None and agent.enrolment is not None
    return Machine(
        worker=worker_state(host),
        enrolled=enrolled,
        enrolled_at=agent.enrolled_at if agent and enrolled else None,
        address=agent.address if agent else "",
        own_account=bool(agent and agent.account_sha256),
        code_until=agent.code_expires_at if agent and agent.awaits_machine else None,
        code_ended=agent.code_expires_at if agent and agent.has_unused_code and not agent.awaits_machine else None,
        heard_at=host.last_seen_at or host.cut_off_heard_at,
        attempt=agent.attempt_problem if agent else "",
        next_url=_next_url(host) if enrolled else "",
        notes=machine_notes(host),
    )


def _next_url(host: Host) -> str:
    missing = host.is_reachable and not Root.objects.filter(host=host).exists()
    return reverse("models:host-folders", args=[host.slug]) if missing else ""


def machine_notes(host: Host) -> tuple[str, ...]:
    """Warnings about the machine of a host, as sentences."""
    notes = []
    now = timezone.now()
    if second := second_agent(host):
        notes.append(
            f"A second agent with this machine's credentials was heard {ago(second.other_seen_at, now)}, on "
            f"{second.other_worker or 'an unnamed machine'}. It was told to stop; {host.worker_id or 'the first'} goes "
            "on. If somebody copied the data folder, enrol the copy as a host of its own."
        )
    if host.state == "mismatch":
        notes.append(f"{version_problem(host.worker_protocol, host.worker_version)} Jobs wait until then.")
    if host.last_seen_at and abs(host.clock_skew_seconds) > MOST_SKEW_SECONDS:
        side = "behind" if host.clock_skew_seconds > 0 else "ahead of"
        notes.append(
            f"Its clock is {duration(abs(host.clock_skew_seconds))} {side} the server's: set both by NTP. "
            "Nothing here is judged by the machine's clock."
        )
    return (*notes, *disk_notes(host))
