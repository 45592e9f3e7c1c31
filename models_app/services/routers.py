"""A host's router: its address, regular looks at it, and what people have it do. What it says is untrusted."""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.signals import host_seen, worker_replaced
from models_app.models import Router
from models_app.router.connection import checked_url, is_sendable_key
from models_app.router.state import HOLDING, MAX_MODELS, MAX_NAME_CHARACTERS, STATES
from models_app.routing import ALL
from models_app.selectors.entry_sight import EntrySight
from models_app.services.key_export import service_secret
from models_app.signals import router_seen
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, NotAllowed, NotFound, Refused
from quartermaster_site.figures import counted
from quartermaster_site.jobs import connection, dispatch, untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.services import Started, start_job

log = logging.getLogger(__name__)
LOOK_TASK = "models_app.host_tasks.look_at_router"
KINDS = {"load": "load_model", "unload": "unload_model"}
"""What people have a router do -> the kind of job."""
_LOST_AFTER = timedelta(minutes=2)
_MOST_ALIASES, _MOST_WORDS = 100, 1000


def router_of(host: Host) -> Router:
    """The row of a host; an unsaved one where nobody set anything."""
    return Router.objects.filter(host=host).first() or Router(host=host)


def save_router(
    *, host: Host, url: str, key: str | None, reload_after_write: bool, version: int, actor: Actor
) -> Router:
    """Where the router listens. `key` is None to keep the one that is stored; a key never goes to another address.

    Raises Refused with a message per field, EditConflict when somebody saved meanwhile.
    """
    require(actor.user, Level.MANAGE)
    problems: dict[str, str] = {}
    try:
        url = checked_url(url)
    except ValueError as problem:
        problems["url"] = str(problem)
    if key is not None and not is_sendable_key(key):
        problems["key"] = "A key holds printable ASCII characters without blanks, 400 at most."
    if problems:
        raise Refused("The router cannot be asked like that.", fields=problems)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        row = router_of(host)
        if row.version != version:
            raise EditConflict("Somebody saved these settings meanwhile.", saved={"url": row.url}, version=row.version)
        moved = url != row.url
        wanted_key = ("" if moved else row.key) if key is None else key
        changes = _changes(row, url, wanted_key, reload_after_write)
        if not changes:
            return row
        row.url, row.key, row.reload_after_write, row.version = url, wanted_key, reload_after_write, version + 1
        if moved:
            row.problem, row.listed, row.held, row.slots, row.seen_at, row.answered_at = "", [], 0, None, None, None
        row.asked_at = None
        row.save()
        record(actor, "router.settings", subject=host, host_slug=host.slug, changes=changes)
        transaction.on_commit(lambda: ask(row))
    return row


def _changes(row: Router, url: str, key: str, reload_after_write: bool) -> dict[str, list[Any]]:
    """For the audit log, which learns that there is a key and no more."""
    pairs: dict[str, list[Any]] = {"url": [row.url, url], "reload": [row.reload_after_write, reload_after_write]}
    changes = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if key != row.key:
        changes["credential"] = ["set" if row.key else "none", "set" if key else "none"]
    return changes


@receiver(host_seen)
def look_if_due(host: Host, **_: Any) -> None:
    """With each heartbeat."""
    row = Router.objects.filter(host=host).exclude(url="").select_related("host").first()
    if row is not None:
        ask(row)


def ask(row: Router) -> None:
    """Send the host to look, unless it is looking."""
    now = timezone.now()
    if not row.url or (row.asked_at is not None and now - row.asked_at < _LOST_AFTER):
        return
    token = secrets.token_urlsafe(24)
    Router.objects.filter(pk=row.pk).update(asked_at=now, token=token)
    try:
        dispatch.send(LOOK_TASK, row.host.queue, slug=row.host.slug, token=token, inputs=inputs_of(row))
    except connection.BROKER_ERRORS as error:
        log.warning("%s: its router is not looked at: %s", row.host.slug, error)
        forget_question(row.host)


@receiver(worker_replaced)
def forget_question(host: Host, **_: Any) -> None:
    """The worker that was asked is gone and will not answer."""
    Router.objects.filter(host=host).update(asked_at=None)


def inputs_of(row: Router) -> dict[str, Any]:
    """What a host needs to reach its router."""
    return {"url": row.url, "key": row.key or service_secret(row.host), "kind": row.host.publish_dialect}


def take_look(slug: str, token: str, answer: Mapping[str, Any]) -> None:
    """What a host saw of its router. Raises ReportRefused for what cannot be believed."""
    with transaction.atomic():
        row = Router.objects.select_for_update().filter(host__slug=slug).first()
        if row is None or row.asked_at is None or not hmac.compare_digest(row.token.encode(), token.encode()):
            raise untrusted.ReportRefused(f"nobody asked {slug} to look at its router like that")
        _store(row, answer)


def _store(row: Router, answer: Mapping[str, Any]) -> None:
    now = timezone.now()
    row.asked_at, row.answered_at = None, now
    row.problem = untrusted.text(answer.get("problem", ""), "problem", 500)
    if not row.problem:
        since = {(item["id"], item["state"]): item["since"] for item in row.listed}
        listed = untrusted.items(answer.get("models"), "models", MAX_MODELS)
        row.listed = [_model(item, since, now.isoformat(timespec="seconds")) for item in listed]
        row.held = sum(item["state"] in HOLDING for item in row.listed)
        row.slots = untrusted.optional_integer(answer.get("slots"), "slots", 0, 1 << 20)
        row.kind = untrusted.text(answer.get("kind"), "kind", 16)
        row.program_version = untrusted.text(answer.get("version"), "version", 100)
        row.seen_at = now
        transaction.on_commit(lambda: router_seen.send(sender=Router, router=row))
    row.save()


def _model(value: Any, since: Mapping[tuple[str, str], str], now: str) -> dict[str, Any]:
    facts = untrusted.mapping(value, "a model")
    name = untrusted.text(facts.get("id"), "id", MAX_NAME_CHARACTERS)
    state = untrusted.text(facts.get("state"), "state", 16)
    if state not in STATES:
        raise untrusted.ReportRefused(f"{state!r} is no state of a model")
    aliases = untrusted.items(facts.get("aliases"), "aliases", _MOST_ALIASES)
    command = untrusted.items(facts.get("command"), "command", _MOST_WORDS)
    return {
        "id": name,
        "state": state,
        "since": since.get((name, state), now),
        "aliases": [untrusted.text(alias, "alias", MAX_NAME_CHARACTERS) for alias in aliases],
        "command": [untrusted.text(word, "a word", 16_000) for word in command],
        "exit_code": untrusted.optional_integer(facts.get("exit_code"), "exit_code", -(1 << 31), 1 << 31),
        "window_tokens": untrusted.optional_integer(facts.get("window_tokens"), "window_tokens"),
        "from_file": untrusted.boolean(facts.get("from_file", True), "from_file"),
    }


def start_action(*, host: Host, action: str, model: str, actor: Actor) -> Started:
    """Have the router load or unload a model (`ALL`: unload every one)."""
    row = router_of(host)
    _require_operate(row, host, model, actor)
    if not row.url:
        raise Refused("No router address is set for this host: an administrator sets it on the Router page.")
    if action not in KINDS or not model or (model == ALL and action == "load"):
        raise Refused("Choose a model to load or unload.")
    row.host = host
    inputs = {"action": action, "model": model, **inputs_of(row)}
    subject = ("router", sha256(model.encode()).hexdigest()[:40], "all models" if model == ALL else model[:200])
    started = start_job(kind=KINDS[action], host=host, inputs=inputs, subject=subject, actor=actor)
    if started.created:
        changes = {"model": ["", model[:300]]}
        record(actor, f"router.{action}", subject=host, host_slug=host.slug, changes=changes)
    return started


def _require_operate(row: Router, host: Host, model: str, actor: Actor) -> None:
    """Raises NotAllowed, and NotFound for an entry that is hidden from the person as for one that is not there."""
    sight = EntrySight(actor.user, host)
    if model == ALL:
        require(actor.user, Level.OPERATE, host)
        held = [item["id"] for item in row.listed if item["state"] in HOLDING]
        if unable := sum(sight.level(name) < Level.OPERATE for name in held):
            raise NotAllowed(f"This would end {counted(unable, 'model')} that you may not unload.")
        return
    level = sight.level(model)
    if level < Level.VIEW or (row.url and model and model not in {item["id"] for item in row.listed}):
        raise NotFound("The router does not list this model.")
    if level < Level.OPERATE:
        require(actor.user, Level.OPERATE, host)
        raise NotAllowed("A policy keeps you from loading and unloading this model.")


def note_action(*, job: Job, data: Mapping[str, Any]) -> None:
    """How the router is after an action: newer than any look."""
    row = Router.objects.select_for_update().filter(host=job.host).first()
    if row is not None:
        _store(row, untrusted.mapping(data.get("router"), "the router"))


def reload_inputs(host: Host) -> dict[str, Any] | None:
    """What a write needs to have the new file read; None where nobody wants that."""
    row = Router.objects.filter(host=host, reload_after_write=True).exclude(url="").select_related("host").first()
    return inputs_of(row) if row else None


def forget_key(job: Job) -> None:
    """A job that is over needs no key."""
    inputs = {name: value for name, value in job.inputs.items() if name not in ("key", "router")}
    if inputs != job.inputs:
        job.inputs = inputs
        Job.objects.filter(pk=job.pk).update(inputs=inputs)
