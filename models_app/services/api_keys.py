"""API keys of the router's clients, as administrators make, limit, rotate and revoke them (web.md 8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import ApiKey, KeyPolicy
from models_app.selectors.own_keys import OwnersReach
from models_app.services.key_hosts import publish_soon, require_keys
from models_app.services.key_making import KeyValues as KeyValues
from models_app.services.key_making import digest_of as digest_of
from models_app.services.key_making import fill, new_key
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, Refused

MOST_NAME, MOST_NOTE, MOST_SCOPE = 64, 300, 5000
MOST_OVERLAP_DAYS = 7
MOST_OWN_KEYS, MOST_OWN_DAYS = 10, 365


def create_key(*, values: KeyValues, form_token: str = "", actor: Actor) -> tuple[ApiKey, str]:
    """The key and its secret, which no later call gives again. A form sent twice gives the key without its secret."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        made = ApiKey.objects.filter(form_token=form_token).first() if form_token else None
        if made is not None:
            return made, ""
        checked = _checked(values)
        key, secret = new_key(checked, owner=actor.user, form_token=form_token)
        for host in checked.hosts:
            require_keys(host)
        record(actor, "access-key.create", subject=key, changes=_changes({}, _facts(key)))
        publish_soon(checked.hosts, actor)
    return key, secret


def import_key(*, values: KeyValues, secret: str, actor: Actor) -> ApiKey:
    """A key that clients have already. One with the same secret that is there for other hosts serves these as well."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        checked = _checked(values)
        key = ApiKey.objects.filter(digest=digest_of(secret), revoked_at=None).first()
        if key is None:
            key, _ = new_key(checked, owner=actor.user, secret=secret)
        key.hosts.add(*checked.hosts)
        for host in checked.hosts:
            require_keys(host)
        record(actor, "access-key.import", subject=key, changes=_changes({}, _facts(key)))
        publish_soon(checked.hosts, actor)
    return key


def drop_imported_key(*, key: ApiKey, host: Host, actor: Actor) -> None:
    """A host forgets a key that an import brought; one that no other host has goes altogether."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        record(actor, "access-key.drop", subject=key, host_slug=host.slug)
        key.hosts.remove(host)
        if not key.hosts.exists():
            key.delete()
        publish_soon([host], actor)


def change_key(*, key: ApiKey, values: KeyValues, version: int, actor: Actor) -> ApiKey:
    """Name, hosts, scope, expiry and note; the secret stays. Raises Refused, EditConflict."""
    require(actor.user, Level.MANAGE)
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().get(pk=key.pk)
        _require_current(key)
        if key.version != version:
            raise EditConflict("Somebody changed this key meanwhile.", saved={"name": key.name}, version=key.version)
        checked, before, hosts = _checked(values, key), _facts(key), set(key.hosts.all())
        fill(key, checked)
        key.version += 1
        key.save()
        key.hosts.set(checked.hosts)
        for host in checked.hosts:
            require_keys(host)
        if changes := _changes(before, _facts(key)):
            record(actor, "access-key.change", subject=key, changes=changes)
        publish_soon({*hosts, *checked.hosts}, actor)
    return key


def rotate_key(*, key: ApiKey, overlap_days: int, actor: Actor) -> tuple[ApiKey, str]:
    """A new secret under the same name; the old one stays valid for so many days. People may with keys of their own."""
    _require_may(actor, key)
    if not 0 <= overlap_days <= MOST_OVERLAP_DAYS:
        raise Refused(f"The old key can stay valid for 0 to {MOST_OVERLAP_DAYS} days.")
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().get(pk=key.pk)
        _require_current(key)
        if key.is_own:
            _require_few_secrets(key)
        hosts, now = list(key.hosts.all()), timezone.now()
        values = KeyValues(key.name, hosts, key.everything, key.files, key.ids, key.expires_at, key.note)
        end = now + timedelta(days=overlap_days)
        key.name = f"{key.name[:MOST_NAME]} (old)"
        key.expires_at = end if key.expires_at is None else min(end, key.expires_at)
        fresh, secret = new_key(values, owner=key.owner if key.is_own else actor.user, is_own=key.is_own)
        key.successor, key.version = fresh, key.version + 1
        if not overlap_days:
            key.revoked_at = now
        key.save()
        record(actor, "access-key.rotate", subject=fresh, changes={"overlap days": [None, overlap_days]})
        publish_soon(hosts, actor)
    return fresh, secret


def revoke_key(*, key: ApiKey, actor: Actor) -> None:
    """It leaves every file with the next write of keys, which follows at once. People may with keys of their own."""
    _require_may(actor, key)
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().get(pk=key.pk)
        if key.is_service:
            raise Refused("This key is of a host's own worker: it goes with “keys required”.")
        if key.revoked_at is not None:
            return
        key.revoked_at, key.version = timezone.now(), key.version + 1
        key.save(update_fields=["revoked_at", "version"])
        record(actor, "access-key.revoke", subject=key)
        publish_soon(list(key.hosts.all()), actor)


def create_own_key(*, values: KeyValues, form_token: str = "", actor: Actor) -> tuple[ApiKey, str]:
    """A key of the person who acts, within what they may use. Raises Refused with a message per field."""
    require(actor.user, Level.OPERATE)
    with transaction.atomic():
        list(KeyPolicy.objects.select_for_update().filter(host__in=list(values.hosts)))  # one at a time counts
        own = ApiKey.objects.filter(owner=actor.user, is_own=True)
        made = own.filter(form_token=form_token).first() if form_token else None
        if made is not None:
            return made, ""
        now = timezone.now()
        if sum(not key.is_over(now) for key in own.filter(successor=None)) >= MOST_OWN_KEYS:
            raise Refused(f"A person has at most {MOST_OWN_KEYS} keys: revoke one first.")
        checked = _checked(values)
        if checked.expires_at is None or checked.expires_at > now + timedelta(days=MOST_OWN_DAYS, minutes=1):
            text = f"A key of your own ends within {MOST_OWN_DAYS} days."
            raise Refused(text, fields={"expires": text})
        key, secret = new_key(checked, owner=actor.user, form_token=form_token, is_own=True)
        reach = OwnersReach([key])
        for host in checked.hosts:
            if problem := reach.problem(key, host, KeyPolicy.objects.filter(host=host).first() or KeyPolicy(host=host)):
                raise Refused(f"{host.name}: {problem}.", fields={"scope": f"{host.name}: {problem}."})
        record(actor, "access-key.create", subject=key, changes=_changes({}, _facts(key)))
        publish_soon(checked.hosts, actor)
    return key, secret


def _require_few_secrets(key: ApiKey) -> None:
    """What rotation leaves behind for a while is limited as well, or it would be a way round the number of keys."""
    if key.successor_id is not None:
        raise Refused("This key has a new secret already: make the next one of the key that took its place.")
    now = timezone.now()
    own = ApiKey.objects.filter(owner=key.owner_id, is_own=True)
    if sum(not item.is_over(now) for item in own) >= 2 * MOST_OWN_KEYS:
        raise Refused("Too many old secrets are still valid: revoke one first.")


def _require_may(actor: Actor, key: ApiKey) -> None:
    """Administrators, and people for keys that they made for themselves."""
    is_theirs = key.is_own and key.owner_id is not None and key.owner_id == getattr(actor.user, "pk", None)
    require(actor.user, Level.OPERATE if is_theirs else Level.MANAGE)


def _checked(values: KeyValues, own: ApiKey | None = None) -> KeyValues:
    """The values as they are stored. Raises Refused with a message per field."""
    name, note = " ".join(values.name.split()), values.note.strip()
    problems: dict[str, str] = {}
    if not 1 <= len(name) <= MOST_NAME or not name.isprintable():
        problems["name"] = f"Between 1 and {MOST_NAME} characters."
    elif _is_taken(name, values.hosts, own):
        problems["name"] = "Another key of one of these hosts has this name."
    if not values.hosts:
        problems["hosts"] = "Choose at least one host."
    if not values.everything and not values.files and not values.ids:
        problems["scope"] = "Choose at least one model, or “All models”: an empty choice never means all."
    if len(values.files) + len(values.ids) > MOST_SCOPE:
        problems["scope"] = f"At most {MOST_SCOPE:,} models."
    expires_at = values.expires_at
    if expires_at is not None and expires_at <= timezone.now() and (own is None or own.expires_at != expires_at):
        problems["expires"] = "This is over already: choose a day to come."
    if len(note) > MOST_NOTE:
        problems["note"] = f"At most {MOST_NOTE} characters."
    if problems:
        raise Refused("This key cannot be stored like that.", fields=problems)
    return KeyValues(name, values.hosts, values.everything, values.files, values.ids, expires_at, note)


def _is_taken(name: str, hosts: Collection[Host], own: ApiKey | None) -> bool:
    others = ApiKey.objects.filter(hosts__in=list(hosts), name__iexact=name, revoked_at=None)
    return others.exclude(pk=own.pk if own else 0).exists()


def _require_current(key: ApiKey) -> None:
    if key.is_service:
        raise Refused("This key is of a host's own worker: nobody uses it but that.")
    if key.revoked_at is not None:
        raise Refused("This key is revoked: make another one.")


def _facts(key: ApiKey) -> dict[str, Any]:
    """For the audit log, which never learns the secret."""
    return {
        "name": key.name,
        "begins with": key.prefix,
        "hosts": sorted(host.slug for host in key.hosts.all()),
        "reaches": "all models" if key.everything else [*key.files, *key.ids],
        "expires": key.expires_at.isoformat(timespec="minutes") if key.expires_at else None,
        "note": key.note,
    }


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: [before.get(name), value] for name, value in after.items() if before.get(name) != value}
