"""What holds for the keys of a whole host: whether one is needed, who may make them, and when its file takes them."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app.models import ApiKey, KeyPolicy
from models_app.services.key_making import KeyValues, new_key
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused
from quartermaster_site.jobs import connection, dispatch

TASK = "models_app.tasks.publish_due_keys"


def set_required(*, host: Host, required: bool, typed_slug: str = "", actor: Actor) -> None:
    """Whether the router of a host must ask for a key (V-16: without, an empty list of keys opens it to everyone)."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        policy, _ = KeyPolicy.objects.select_for_update().get_or_create(host=host)
        if policy.required == required:
            return
        if not required and typed_slug.strip() != host.slug:
            text = f"Type {host.slug} to confirm: without a key the router answers anyone who can reach it."
            raise Refused(text, fields={"slug": text})
        if required:
            require_keys(host)
        else:
            KeyPolicy.objects.filter(pk=policy.pk).update(required=False)
            if policy.mode == KeyPolicy.Mode.INLINE:  # else its variable is set already, for the next time
                ApiKey.objects.filter(hosts=host, is_service=True, revoked_at=None).update(revoked_at=timezone.now())
        record(
            actor,
            "access-key.required",
            subject=host,
            host_slug=host.slug,
            changes={"required": [not required, required]},
        )
        publish_soon([host], actor)


def set_self_service(*, host: Host, allowed: bool, actor: Actor) -> None:
    """Whether operators and editors make keys of their own for a host. Without it those that are there are withheld."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        policy, _ = KeyPolicy.objects.select_for_update().get_or_create(host=host)
        if policy.self_service == allowed:
            return
        if allowed and not policy.required:
            raise Refused("Require keys of this host first: the first key would shut everybody else out.")
        KeyPolicy.objects.filter(pk=policy.pk).update(self_service=allowed)
        changes = {"own keys": [not allowed, allowed]}
        record(actor, "access-key.self-service", subject=host, host_slug=host.slug, changes=changes)
        publish_soon([host], actor)


def require_keys(host: Host) -> None:
    """From the first key on a host's router asks for one, and its worker has one."""
    KeyPolicy.objects.update_or_create(host=host, defaults={"required": True})
    if not ApiKey.objects.filter(hosts=host, is_service=True, revoked_at=None).exists():
        key, _ = new_key(KeyValues(f"worker of {host.slug}", [host], everything=True))
        ApiKey.objects.filter(pk=key.pk).update(is_service=True)


def publish_soon(hosts: Collection[Host], actor: Actor) -> None:
    """Plan these hosts anew, and have their files take the keys of now without waiting for that."""
    for host in hosts:
        request_plan(host=host, actor=actor)
    transaction.on_commit(_send)


def _send() -> None:
    try:
        dispatch.send(TASK, dispatch.CONTROL_QUEUE)
    except connection.BROKER_ERRORS:  # the next look, half a minute later, does it
        return
