"""Messages of enrolled machines: whose they are, and whether they speak for their own host only."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from gpus_app import agents
from gpus_app.models import Agent
from quartermaster_site.agent.envelope import signed_text
from quartermaster_site.agent.identity import is_signed
from quartermaster_site.celery import app
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.untrusted import ReportRefused

log = logging.getLogger(__name__)
JOB_EVENT = "quartermaster_site.jobs.tasks.job_event"
HEARTBEAT = "gpus_app.tasks.host_heartbeat"
ABOUT_A_HOST = (
    HEARTBEAT,
    "gpus_app.tasks.host_sampled",
    "models_app.tasks.folders_looked_at",
    "models_app.tasks.folders_stir",
    "models_app.tasks.router_looked_at",
    "models_app.tasks.target_looked_at",
    "models_app.tasks.target_stirs",
)
"""Tasks that name their host; nothing else of the control queue is open to machines."""
MAX_BODY = 32 << 20


@dataclass(frozen=True, slots=True)
class Envelope:
    enrolment: str
    instance: str
    sequence: int
    task: str
    body: str
    signature: str


def parse(value: Any) -> Envelope:
    """Raises ReportRefused."""
    facts = untrusted.mapping(value, "the envelope")
    body = facts.get("body")
    if not isinstance(body, str) or len(body) > MAX_BODY:
        raise ReportRefused("the body is not text, or too long")
    texts = ("enrolment", "instance", "task", "signature")
    return Envelope(
        **{name: untrusted.text(facts.get(name), name, 128) for name in texts},
        sequence=untrusted.integer(facts.get("sequence"), "sequence"),
        body=body,
    )


def receive(value: Any) -> None:
    """Check one message and do what it asks for. One that is not believed changes nothing, and is logged."""
    try:
        envelope = parse(value)
        agent = _sender(envelope)
        arguments = untrusted.mapping(_json(envelope.body), "the arguments")
        _check_scope(agent, envelope.task, arguments)
        if envelope.task == HEARTBEAT and not agents.note_instance(agent, envelope, arguments):
            return
    except ReportRefused as refused:
        log.warning("message of a machine refused: %s", refused)
        return
    try:
        app.tasks[envelope.task](**arguments)
    except TypeError as error:
        log.warning("message of %s has the wrong arguments: %s", agent.host.slug, error)


def _sender(envelope: Envelope) -> Agent:
    agent = Agent.objects.select_related("host").filter(enrolment=envelope.enrolment).first()
    if agent is None:
        raise ReportRefused("an enrolment that is not known, or was revoked")
    text = signed_text(
        enrolment=envelope.enrolment,
        instance=envelope.instance,
        sequence=envelope.sequence,
        task=envelope.task,
        body=envelope.body,
    )
    if not is_signed(agent.public_key, envelope.signature, text):
        raise ReportRefused(f"the signature is not that of {agent.host.slug}")
    return agent


def _json(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReportRefused("the body is not JSON") from error


def _check_scope(agent: Agent, task: str, arguments: dict[str, Any]) -> None:
    """Raise ReportRefused unless the message is about the host of its sender."""
    if task == JOB_EVENT:
        event = untrusted.mapping(arguments.get("event"), "the report")
        number = untrusted.integer(event.get("job"), "job", 1)
        if not Job.objects.filter(pk=number, host=agent.host).exists():
            raise ReportRefused(f"{agent.host.slug} reports for job {number}, which is not its own")
    elif task not in ABOUT_A_HOST:
        raise ReportRefused(f"{agent.host.slug} asks for {task!r}, which machines may not")
    elif arguments.get("slug") != agent.host.slug:
        raise ReportRefused(f"{agent.host.slug} speaks for {arguments.get('slug')!r}")
