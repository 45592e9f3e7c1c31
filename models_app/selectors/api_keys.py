"""API keys with what became of each on each host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Q
from django.utils import timezone

from gpus_app.models import Host
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.keys import variable_of
from models_app.models import ApiKey, KeyPolicy, Revision, Row, StoredPlan, TargetWatch
from models_app.selectors.key_environment import Environment, environments
from models_app.selectors.own_keys import OwnersReach
from quartermaster_site.errors import NotFound


class Place(StrEnum):
    """Whether a key is good on a host."""

    LIVE = "live"
    PENDING = "pending"
    WITHHELD = "withheld"
    LEAVING = "still valid"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class KeyPlace:
    host: Host
    state: Place
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KeyLine:
    key: ApiKey
    places: Sequence[KeyPlace]
    unserved: Sequence[str]
    """What it names and no host serves any more."""
    is_over: bool


@dataclass(frozen=True, slots=True)
class HostKeys:
    """One host on the page of keys."""

    host: Host
    required: bool
    is_open: bool
    """What is live there holds no key: the router answers anyone."""
    environment: Environment


@dataclass(frozen=True, slots=True)
class _Live:
    """The keys of what is live on a host, and why a change waits."""

    numbers: frozenset[int]
    waits: str


def get_key(pk: int) -> ApiKey:
    """A client's key; NotFound."""
    key = ApiKey.objects.filter(pk=pk, is_service=False).prefetch_related("hosts").first()
    if key is None:
        raise NotFound("There is no such key.")
    return key


@dataclass(frozen=True, slots=True)
class KeysPage:
    keys: Sequence[KeyLine]
    """Those of clients; those that are over last."""
    hosts: Sequence[HostKeys]


def keys_page() -> KeysPage:
    """All keys and hosts, in a fixed number of queries."""
    rows = list(ApiKey.objects.filter(is_service=False).select_related("owner").prefetch_related("hosts"))
    everyone = _hosts()
    live, known, now = _live(everyone), _served_names(rows), timezone.now()
    reach = OwnersReach(rows)
    lines = sorted(
        (_line(key, everyone, live, known, now, reach) for key in rows),
        key=lambda line: (line.is_over, line.key.name.casefold(), line.key.pk),
    )
    hosts = [
        HostKeys(found.host, found.policy.required, found.host.pk in live and not live[found.host.pk].numbers, found)
        for found in environments(everyone)
    ]
    return KeysPage(lines, hosts)


def key_line(key: ApiKey) -> KeyLine:
    """One key with what became of it on each host."""
    everyone = _hosts()
    return _line(key, everyone, _live(everyone), _served_names([key]), timezone.now(), OwnersReach([key]))


def key_lines(keys: Sequence[ApiKey]) -> list[KeyLine]:
    """Some keys with what became of each on each host."""
    everyone, now, reach = _hosts(), timezone.now(), OwnersReach(keys)
    live, known = _live(everyone), _served_names(keys)
    return [_line(key, everyone, live, known, now, reach) for key in keys]


def _hosts() -> list[Host]:
    return list(Host.objects.select_related("key_policy", "target_watch"))


def scope_choices() -> list[tuple[str, str, list[str]]]:
    """(path, id of the base, ids of all profiles) of every model that is served, by id."""
    found: dict[str, tuple[str, list[str]]] = {}
    plans = StoredPlan.objects.filter(skip_reason="").order_by("row__served_id", "id")
    for path, served, profile in plans.values_list("row__path", "row__served_id", "profile_id"):
        found.setdefault(path, (served, []))[1].append(profile)
    return [(path, served, profiles) for path, (served, profiles) in found.items()]


def _live(everyone: Sequence[Host]) -> dict[int, _Live]:
    """Host -> what is live there; hosts without a text of ours are left out."""
    hosts = {host.pk: host for host in everyone if host.written_sha256}
    wanted = Q(pk__in=[])
    for host in hosts.values():
        wanted |= Q(host=host, sha256=host.written_sha256)
    texts = Revision.objects.filter(wanted).order_by("number").values_list("host_id", "inputs")
    return {pk: _Live(frozenset(inputs.get("keys", [])), _waits(hosts[pk])) for pk, inputs in texts}


def _waits(host: Host) -> str:
    """Why nothing is written to a host just now, in words."""
    watch: TargetWatch | None = getattr(host, "target_watch", None)
    if watch is not None and watch.is_by_hand:
        return "its file is managed by hand"
    if watch is not None and watch.has_drifted:
        return "its file was changed by somebody else"
    if host.is_reachable:
        return ""
    return f"host {host.state} since {host.last_seen_at:%Y-%m-%d %H:%M}" if host.last_seen_at else "never seen"


def _served_names(keys: Sequence[ApiKey]) -> frozenset[str]:
    """Of the files and ids that keys name, those that are served."""
    files = {path for key in keys for path in key.files}
    ids = {name for key in keys for name in key.ids}
    if not files and not ids:
        return frozenset()
    rows = Row.objects.filter(path__in=files, plans__skip_reason="").values_list("path", flat=True)
    plans = StoredPlan.objects.filter(profile_id__in=ids, skip_reason="").values_list("profile_id", flat=True)
    return frozenset([*rows, *plans])


def _line(
    key: ApiKey,
    everyone: Sequence[Host],
    live: Mapping[int, _Live],
    known: frozenset[str],
    now: datetime,
    reach: OwnersReach,
) -> KeyLine:
    unserved = [name for name in (*key.files, *key.ids) if name not in known]
    reaches = key.everything or len(unserved) < len(key.files) + len(key.ids)
    is_over = key.is_over(now)
    own = {host.pk for host in key.hosts.all()}
    places = [
        _place(key, host, live.get(host.pk), reaches=reaches, is_over=is_over, reach=reach)
        for host in everyone
        if host.pk in own
    ]
    return KeyLine(key, places, [] if key.everything else unserved, is_over)


def _place(
    key: ApiKey, host: Host, live: _Live | None, *, reaches: bool, is_over: bool, reach: OwnersReach
) -> KeyPlace:
    held = live is not None and key.pk in live.numbers
    waits = live.waits if live else ""
    if is_over:
        return KeyPlace(host, Place.LEAVING, waits) if held else KeyPlace(host, Place.GONE)
    policy: KeyPolicy = getattr(host, "key_policy", None) or KeyPolicy(host=host)
    if problem := reach.problem(key, host, policy):
        return KeyPlace(host, Place.LEAVING if held else Place.WITHHELD, problem)
    if held:
        return KeyPlace(host, Place.LIVE)
    dialect = BY_SLUG[host.publish_dialect]
    if not key.everything and not dialect.scopes_keys:
        return KeyPlace(host, Place.WITHHELD, f"{dialect.label} cannot limit a key to some models")
    if not reaches:
        return KeyPlace(host, Place.WITHHELD, "none of its models is served")
    if policy.waits_for_variable(key, host.publish_dialect):
        return KeyPlace(host, Place.PENDING, f"{variable_of(key.pk)} is to be set in its router's environment")
    return KeyPlace(host, Place.PENDING, waits or ("" if live else "nothing was written to this host yet"))
