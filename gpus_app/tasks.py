"""Control-queue tasks about hosts."""

from __future__ import annotations

import logging
from typing import Any

from celery.signals import worker_ready
from django.db import OperationalError

from gpus_app import agent_messages, enrolment, services, telemetry
from quartermaster_site import env
from quartermaster_site.agent.envelope import TASK as AGENT_MESSAGE
from quartermaster_site.celery import RENEW_SECONDS, app
from quartermaster_site.errors import Unavailable
from quartermaster_site.jobs import untrusted

log = logging.getLogger(__name__)


@app.task(name="gpus_app.tasks.host_heartbeat")  # type: ignore[untyped-decorator]
def host_heartbeat(slug: Any, worker: Any, version: Any, sent_at: Any, protocol: Any = 0) -> None:
    """A worker is alive; what it says is untrusted."""
    try:
        services.note_heartbeat(
            slug=untrusted.text(slug, "slug", 40),
            worker=untrusted.text(worker, "worker", 64),
            version=untrusted.text(version, "version", 32),
            sent_at=untrusted.number(sent_at, "sent_at", 0, 1e11),
            protocol=untrusted.integer(protocol, "protocol", 0, 1 << 30),
        )
    except untrusted.ReportRefused as refused:
        log.warning("heartbeat refused: %s", refused)


@app.task(  # type: ignore[untyped-decorator]
    name=AGENT_MESSAGE, autoretry_for=(OperationalError,), max_retries=8, retry_backoff=1
)
def agent_message(envelope: Any) -> None:
    """Whatever an enrolled machine reports, signed by it; untrusted."""
    agent_messages.receive(envelope)


@app.task(name="gpus_app.tasks.renew_broker_accounts")  # type: ignore[untyped-decorator]
def renew_broker_accounts(known_too: bool = False) -> None:
    """Every half minute: a broker that was restarted has forgotten who may use it."""
    try:
        for slug in enrolment.renew_accounts(known_too=known_too):
            log.warning("the broker knew the account of %s no longer: it was made again", slug)
    except Unavailable as error:
        log.warning("accounts of machines: %s", error)


@worker_ready.connect  # type: ignore[untyped-decorator]
def renew_all_accounts(**_: Any) -> None:
    """At the start of a control worker: a broker that ran through an upgrade has the old access lists."""
    if env.redis_url():
        renew_broker_accounts.apply_async(kwargs={"known_too": True}, expires=RENEW_SECONDS)


@app.task(name="gpus_app.tasks.host_sampled")  # type: ignore[untyped-decorator]
def host_sampled(slug: Any, sample: Any) -> None:
    """What a host measured; untrusted."""
    try:
        telemetry.take_sample(untrusted.text(slug, "slug", 40), untrusted.mapping(sample, "the sample"))
    except untrusted.ReportRefused as refused:
        log.warning("sample refused: %s", refused)
