"""Whether a host's file holds the secrets of its keys or names the variables that do (web.md 8.6).

A router refuses a whole file that names a variable which is not set, and nobody but the router can see what is. So a
key is named only after an administrator said that its variable is set.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from gpus_app.models import Host
from models_app.core.export.dialects import BY_SLUG
from models_app.models import KeyPolicy
from models_app.selectors.key_environment import environment_of
from models_app.services.key_hosts import publish_soon
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused
from quartermaster_site.sealing import unseal

FILE_NAME = "router-keys.env"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def name_variables(*, host: Host, numbers: Collection[int], actor: Actor) -> None:
    """From now on the file names variables. `numbers`: the keys whose variables the person says are set, which are all
    that the file holds: none of them may fall out of it. Raises Refused.
    """
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        policy, _ = KeyPolicy.objects.select_for_update().get_or_create(host=host)
        dialect = BY_SLUG[host.publish_dialect]
        if not dialect.names_variables:
            raise Refused(f"{dialect.label} reads its keys from a file, which cannot name variables.")
        found = environment_of(host)
        if not found.has_worker_key:
            raise Refused("Require keys of this host first: until then its file names none.")
        if {item.key.pk for item in found.variables} != set(numbers):
            raise Refused("The keys of this host are others meanwhile: look at the variables once more.")
        _store(policy, KeyPolicy.Mode.ENVIRONMENT, numbers, actor)


def hold_secrets(*, host: Host, actor: Actor) -> None:
    """From now on the file holds the secrets themselves."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        policy, _ = KeyPolicy.objects.select_for_update().get_or_create(host=host)
        _store(policy, KeyPolicy.Mode.INLINE, (), actor)


def note_variables_set(*, host: Host, numbers: Collection[int], actor: Actor) -> None:
    """The variables of these keys are set as well, says the person: the file may name them."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        policy, _ = KeyPolicy.objects.select_for_update().get_or_create(host=host)
        if policy.mode != KeyPolicy.Mode.ENVIRONMENT:
            raise Refused("The file of this host holds the secrets themselves.")
        known = {item.key.pk for item in environment_of(host).variables}
        _store(policy, policy.mode, known & {*policy.variables_set, *numbers}, actor)


def environment_file(*, host: Host, actor: Actor) -> str:
    """`NAME=secret` lines of the variables that nobody said are set yet: so each is given out until then, on record."""
    require(actor.user, Level.MANAGE)
    missing = environment_of(host).missing
    if not missing:
        raise Refused("Every variable of this host is set: its keys are not given out again.")
    lines = [f"# Keys of the router of {host.slug}: set these in its environment, then start it again."]
    for item in missing:
        secret = unseal(item.key.sealed)
        odd = "" if set(secret) <= _PLAIN else " (holds characters that some readers want quoted)"
        lines += [f"# {item.key.name}{odd}", f"{item.name}={secret}"]
    record(actor, "config.export-secrets", subject=host, label=FILE_NAME, host_slug=host.slug)
    return "".join(f"{line}\n" for line in lines)


def _store(policy: KeyPolicy, mode: str, numbers: Collection[int], actor: Actor) -> None:
    before, wanted = (policy.mode, policy.variables_set), (mode, sorted(numbers))
    if before == wanted:
        return
    KeyPolicy.objects.filter(pk=policy.pk).update(mode=mode, variables_set=wanted[1])
    names = ("mode", "variables set")
    changes = {name: [old, new] for name, old, new in zip(names, before, wanted, strict=True) if old != new}
    record(actor, "access-key.environment", subject=policy.host, host_slug=policy.host.slug, changes=changes)
    publish_soon([policy.host], actor)
