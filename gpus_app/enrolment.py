"""Enrolling machines: a code for each host, used once; pausing, removing."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from gpus_app.agents import version_problem
from gpus_app.models import Agent, Host
from gpus_app.services import register_host
from quartermaster_site import broker_accounts, env
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.agent.identity import is_key
from quartermaster_site.errors import NotAllowed, Refused
from quartermaster_site.jobs.services import send_kept_back

CODE_PREFIX = "qme-"
CODE_LIFE = timedelta(minutes=30)
_NEW_CODE = "Ask an administrator for a new one, on the page of the host."


def create_host(*, slug: str, name: str, actor: Actor) -> tuple[Host, str]:
    """A host for another machine, and the code with which that machine enrols. Raises Refused with a field."""
    require(actor.user, Level.MANAGE)
    slug, name = slug.strip().lower(), name.strip()
    problems = {}
    if not env.SLUG.fullmatch(slug):
        problems["slug"] = "Lower-case letters, digits and dashes, 40 at most, no dash at either end."
    elif Host.objects.filter(slug=slug).exists():
        problems["slug"] = "There is a host with this name already: make a new code on its page."
    if not 1 <= len(name or slug) <= 100:
        problems["name"] = "100 characters at most."
    if problems:
        raise Refused("This host cannot be made.", fields=problems)
    _require_broker("")
    with transaction.atomic():
        host = register_host(slug=slug, name=name or slug)
        record(actor, "host.create", subject=host, host_slug=slug)
        return host, new_code(host=host, actor=actor)


def new_code(*, host: Host, actor: Actor) -> str:
    """A fresh code, in the place of an earlier one. What enrolled before is cut off at once."""
    require(actor.user, Level.MANAGE)
    agent = Agent.objects.filter(host=host).first() or Agent(host=host)
    if agent.enrolment is None and host.is_reachable:
        raise Refused(f"{host} has a worker that runs beside the server: it needs no code.")
    _require_broker("")
    code = CODE_PREFIX + secrets.token_urlsafe(24)
    with transaction.atomic():
        again = agent.enrolment is not None
        if again:
            _cut_off(agent)
        agent.code_digest, agent.code_used_at = _digest(code), None
        agent.code_expires_at = timezone.now() + CODE_LIFE
        agent.attempt_at, agent.attempt_problem = None, ""
        agent.save()
        record(actor, "host.code", subject=host, host_slug=host.slug, reason="re-enrol" if again else "")
    return code


def _cut_off(agent: Agent) -> None:
    """The machine's reports are no longer believed, and the broker knows it no longer."""
    if agent.account_sha256:
        broker_accounts.revoke(agent.host.slug)
    agent.enrolment, agent.public_key, agent.account_sha256 = None, "", ""
    agent.instance, agent.instance_seen_at, agent.sequence = "", None, 0
    agent.other_instance, agent.other_seen_at, agent.other_worker = "", None, ""
    agent.heard_before_at = agent.host.last_seen_at or agent.heard_before_at
    Host.objects.filter(pk=agent.host.pk).update(last_seen_at=None, worker_protocol=0)


def redeem(*, code: str, public_key: str, worker: str, version: str, protocol: int, address: str) -> dict[str, Any]:
    """What a machine gets for its code: identity and broker. Raises NotAllowed or Refused; the code is used up last."""
    if why := version_problem(protocol, version):
        raise Refused(why)
    if not is_key(public_key):
        raise Refused("The public key cannot be used.")
    _require_broker(address)
    agent = _agent_of(code, worker, address)
    password = "" if broker_accounts.why_shared() else secrets.token_urlsafe(32)
    with transaction.atomic():
        agent = Agent.objects.select_for_update(of=("self",)).select_related("host").get(pk=agent.pk)
        if problem := _code_problem(agent):  # somebody was faster
            raise NotAllowed(problem)
        slug, now = agent.host.slug, timezone.now()
        agent.code_used_at = agent.enrolled_at = agent.attempt_at = now
        agent.enrolment, agent.public_key = secrets.token_hex(12), public_key
        agent.address, agent.attempt_problem = address, ""
        if password:
            agent.account_sha256 = broker_accounts.password_digest(password)
            broker_accounts.grant(slug, agent.account_sha256)
        agent.save()
        actor = Actor(name=f"worker of {slug}", address=address)
        record(actor, "host.enrol", subject=agent.host, host_slug=slug, changes={"machine": [None, worker]})
    ca = env.redis_ca()
    return {
        "slug": slug,
        "enrolment": agent.enrolment,
        "broker_url": broker_accounts.address_for(slug, password),
        "broker_ca": Path(ca).read_text(encoding="utf-8") if ca else "",
        "own_account": bool(password),
    }


def _agent_of(code: str, worker: str, address: str) -> Agent:
    """The row that a code belongs to. A refusal is kept for the host's page and the audit log."""
    digest = _digest(code)
    agent = Agent.objects.select_related("host").filter(code_digest=digest).first()
    if agent is None or not hmac.compare_digest(agent.code_digest or "", digest):
        problem = f"This code is not known here: it was replaced, or another server made it. {_NEW_CODE}"
        record(Actor(name="a machine", address=address), "host.enrol", label=worker, result=_REFUSED, reason=problem)
        raise NotAllowed(problem)
    if problem := _code_problem(agent):
        agent.attempt_at, agent.attempt_problem = timezone.now(), f"{worker} ({address}): {problem}"[:300]
        agent.save(update_fields=["attempt_at", "attempt_problem"])
        slug = agent.host.slug
        actor = Actor(name=f"worker of {slug}", address=address)
        record(actor, "host.enrol", subject=agent.host, host_slug=slug, result=_REFUSED, reason=problem)
        raise NotAllowed(problem)
    return agent


_REFUSED = AuditEntry.Result.REFUSED


def _code_problem(agent: Agent) -> str:
    if agent.code_used_at is not None:
        return f"This code was used at {_clock(agent.code_used_at)}; each works once. {_NEW_CODE}"
    if agent.code_expires_at is None or agent.code_expires_at <= timezone.now():
        return f"This code was good until {_clock(agent.code_expires_at)}. {_NEW_CODE}"
    return ""


def _clock(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else "now"


def _digest(code: str) -> str:
    """A plain hash is enough for 192 random bits."""
    return hashlib.sha256(code.strip().encode("utf-8", "replace")).hexdigest()


def why_no_machines(address: str = "") -> str:
    """Why a machine at `address` could not reach the queue, as a sentence; "" where it can, as far as we know."""
    url = env.agent_redis_url()
    if not env.redis_url():
        return (
            "The queue is files in the data folder of this machine, where no other machine can reach it. "
            "Start a Redis or Valkey and set QM_REDIS_URL."
        )
    if url.startswith("unix://"):
        return "Redis listens on a socket of this machine only: set QM_AGENT_REDIS_URL to its address for others."
    if address and is_loopback(urlsplit(url).hostname or "") and not is_loopback(address):
        return "The server calls its broker by a loopback address: set QM_AGENT_REDIS_URL there, to one for others."
    return ""


def is_loopback(name: str) -> bool:
    """Whether a host name or address leads back to the machine that asks for it."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _require_broker(address: str) -> None:
    if why := why_no_machines(address):
        raise Refused(why)


def pause_host(*, host: Host, paused: bool, actor: Actor) -> Host:
    """Keep jobs of a host back, or send what was kept. What was sent before goes on."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host.pk)
        if host.paused == paused:
            return host
        since, host.paused = host.paused_at, paused
        host.paused_at = timezone.now() if paused else None
        host.save(update_fields=["paused", "paused_at"])
        record(actor, "host.pause" if paused else "host.resume", subject=host, host_slug=host.slug)
        if not paused:
            send_kept_back(host, since)
    return host


def remove_host(*, host: Host, typed_slug: str, actor: Actor) -> None:
    """Forget a host: its models, plans, revisions and jobs here. No file on the machine is touched."""
    require(actor.user, Level.MANAGE)
    agent = Agent.objects.filter(host=host).first()
    if agent is None and host.slug == env.host_slug():
        raise Refused(f"{host} is the machine on which Quartermaster itself runs.")
    if typed_slug.strip() != host.slug:
        raise Refused("The name does not match.", fields={"slug": f"Type {host.slug} to confirm."})
    with transaction.atomic():
        record(actor, "host.remove", subject=host, host_slug=host.slug)
        if agent is not None and agent.account_sha256:
            broker_accounts.revoke(host.slug)
        if env.redis_url():
            broker_accounts.forget_queue(host.slug)
        host.delete()


def renew_accounts(*, known_too: bool = False) -> list[str]:
    """Make accounts again that the broker has lost in a restart; the slugs of their hosts.

    With `known_too` all others are brought up to date: an older version may have given them another access list.
    """
    digests = dict(Agent.objects.exclude(account_sha256="").values_list("host__slug", "account_sha256"))
    return broker_accounts.renew(digests, known_too=known_too) if digests and env.redis_url() else []
