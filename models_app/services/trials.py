"""Test launches: the command of a model started once on its host, asked the smallest question, and stopped."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from models_app import convert
from models_app.core.catalog import Plan
from models_app.core.export.entry import plan_env
from models_app.core.plans.question import question_of
from models_app.models import Row
from models_app.services.planning import Preview, preview_plan
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.access.redaction import redact
from quartermaster_site.errors import Refused
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import UNFINISHED, Job
from quartermaster_site.jobs.services import Started, start_job

KIND = "test_launch"
MAX_LINES = 200
MAX_SECONDS = 3600.0
MAX_DEVICES = 64


DEFAULT_HEALTH = "/health"


def refusal(plan: Plan) -> str:
    """Why the launch of a plan cannot be tried, "" when it can."""
    if plan.skip_reason or not plan.lines:
        return "This model is not planned, so there is no command to start."
    if question_of(plan) is None:
        return "Nobody here knows how to ask the server of this model anything."
    return ""


def start_trial(*, row: Row, actor: Actor) -> Started:
    """Start what is planned now. One model of a host at a time: two would take each other's memory."""
    require(actor.user, Level.OPERATE, row)
    preview = preview_plan(row=row)
    if reason := refusal(preview.base):
        raise Refused(reason)
    other = Job.objects.filter(kind=KIND, host=row.host, state__in=UNFINISHED).exclude(object_id=str(row.pk)).first()
    if other is not None:
        raise Refused(f"{other.object_label} is being tried on this host: wait for job {other.pk}, or cancel it.")
    subject = ("row", str(row.pk), row.served_id)
    started = start_job(kind=KIND, host=row.host, inputs=trial_inputs(row, preview), subject=subject, actor=actor)
    if started.created:
        record(actor, "model.test-launch", subject=row, host_slug=row.host.slug)
    return started


def trial_inputs(row: Row, preview: Preview) -> dict[str, Any]:
    """What the host is given: the very command of the entry, its environment, and what the server is asked."""
    plan, question = preview.base, question_of(preview.base)
    assert question is not None, "refusal() asks first"
    return {
        "words": list(plan.argv),
        "variables": dict(item.split("=", 1) for item in plan_env(plan, preview.budget)),
        "health": plan.entry.get("checkEndpoint", DEFAULT_HEALTH),
        "audiocpp": plan.entry.get("audiocpp"),
        "question": asdict(question),
        "seconds": convert.core_settings(row.host).health_check_timeout,
    }


def trial_result(data: dict[str, Any]) -> dict[str, Any]:
    """What the job keeps of a report. Raises ReportRefused."""
    lines = untrusted.items(data.get("lines", []), "lines", MAX_LINES)
    return {
        "ready_seconds": untrusted.number(data.get("ready_seconds"), "ready_seconds", 0, MAX_SECONDS),
        "answer_seconds": untrusted.number(data.get("answer_seconds"), "answer_seconds", 0, MAX_SECONDS),
        "answer": untrusted.text(data.get("answer", ""), "answer", 200),
        "peak_bytes": untrusted.integer(data.get("peak_bytes"), "peak_bytes"),
        "devices": [_device(item) for item in untrusted.items(data.get("devices", []), "devices", MAX_DEVICES)],
        "lines": [str(redact(untrusted.text(line, "a line", 400))) for line in lines],
    }


def _device(item: Any) -> dict[str, Any]:
    device = untrusted.mapping(item, "a device")
    return {
        "index": untrusted.integer(device.get("index"), "index"),
        "name": untrusted.text(device.get("name", ""), "name", 100),
        "bytes": untrusted.integer(device.get("bytes"), "bytes"),
    }


def last_trial(row: Row) -> Job | None:
    """The newest test launch of a model."""
    return Job.objects.filter(kind=KIND, host=row.host, object_type="row", object_id=str(row.pk)).first()
