"""Agents of enrolled machines: which of them answers for its host, and what each is told when it asks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Agent, Host
from gpus_app.signals import worker_replaced
from quartermaster_site.jobs.sweeping import LOST_AFTER, lose_of_predecessor
from quartermaster_site.version import PROTOCOL, product_version

SILENT_AFTER = timedelta(seconds=20)
"""An agent that says nothing for so long (four heartbeats) may be replaced by another one."""
SECOND_SHOWN = timedelta(hours=1)
"""How long a page tells of a second agent after it was last heard of."""
MOST_SKEW_SECONDS = 5.0


def note_instance(agent: Agent, envelope: Any, arguments: dict[str, Any]) -> bool:
    """Whether this heartbeat counts: the first delivery of one, from the process that answers for the host.

    Of two processes with the same credentials the earlier one stays until it is silent; the other is noted.
    """
    with transaction.atomic():
        row = Agent.objects.select_for_update().get(pk=agent.pk)
        if row.instance == envelope.instance and envelope.sequence <= row.sequence:
            return False
        replaces = row.instance != envelope.instance
        counts = takes_over(row, envelope.instance, timezone.now())
        if counts:
            row.sequence = envelope.sequence
        else:
            row.other_worker = str(arguments.get("worker", ""))[:64]
        row.save()
    if counts and replaces:
        worker_replaced.send(sender=Host, host=agent.host)
    if counts and row.instance_since and timezone.now() - row.instance_since < LOST_AFTER:
        lose_of_predecessor(agent.host, row.instance_since, SILENT_AFTER)
    return counts


def takes_over(row: Agent, instance: str, now: datetime) -> bool:
    """Note that an instance was heard; whether it is the one that answers for the host. Does not save."""
    same = row.instance == instance
    if same or row.instance_seen_at is None or now - row.instance_seen_at > SILENT_AFTER:
        if not same:
            row.instance, row.instance_since, row.sequence = instance, now, 0
        if row.other_instance == instance:
            row.other_instance, row.other_seen_at = "", None
        row.instance_seen_at = now
        return True
    row.other_instance, row.other_seen_at = instance, now
    return False


def second_agent(host: Host) -> Agent | None:
    """The agent row of a host where a second process with the same credentials was heard lately."""
    agent: Agent | None = getattr(host, "agent", None)
    if agent is None or agent.other_seen_at is None:
        return None
    return agent if timezone.now() - agent.other_seen_at < SECOND_SHOWN else None


def leave(agent: Agent, instance: str) -> None:
    """The agent stops by request: the next one need not wait until it is silent."""
    gone = {"instance": "", "instance_seen_at": None, "sequence": 0}
    Agent.objects.filter(pk=agent.pk, instance=instance).update(**gone)


def check_in(
    agent: Agent,
    *,
    instance: str,
    worker: str,
    version: str,
    protocol: int,
    address: str,
    sent_at: float | None = None,
) -> dict[str, Any]:
    """What an agent is told that asks over HTTP: {"state", "message", ...}. `state` is ok, second or mismatch.

    An empty instance asks without claiming to run. `sent_at`, by the clock of the machine: no queue lies between.
    """
    host, now = agent.host, timezone.now()
    with transaction.atomic():
        row = Agent.objects.select_for_update().get(pk=agent.pk)
        replaces = bool(instance) and row.instance != instance
        answers = not instance or takes_over(row, instance, now)
        if not answers:
            row.other_worker = worker
        row.address = address
        row.save()
    if answers and replaces:
        worker_replaced.send(sender=Host, host=host)
    if answers and sent_at is not None:
        Host.objects.filter(pk=host.pk).update(clock_skew_seconds=round(now.timestamp() - sent_at, 1))
    state, message = "ok", ""
    if why := version_problem(protocol, version):
        facts = {"worker_protocol": protocol, "worker_version": version, "worker_id": worker, "last_seen_at": now}
        Host.objects.filter(pk=host.pk).update(**facts)
        state, message = "mismatch", why
    elif not answers:
        other = host.worker_id or "another machine"
        state = "second"
        message = f"An agent with the credentials of {host.slug} runs already, on {other}. Stop one of the two."
    return {
        "state": state,
        "message": message,
        "paused": host.paused,
        "version": product_version(),
        "protocol": PROTOCOL,
        "server_time": now.timestamp(),
    }


def version_problem(protocol: int, version: str) -> str:
    """What to do about an agent whose messages are of another version; "" where they are not."""
    if protocol == PROTOCOL:
        return ""
    ours = product_version()
    if protocol < PROTOCOL:
        return f"This agent ({version}) is older than the server ({ours}): update it, then start it again."
    return f"This agent ({version}) is newer than the server ({ours}): update the server."
