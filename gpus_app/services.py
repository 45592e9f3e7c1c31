"""Changes to hosts: registering, memory, target, and asking a host what it has."""

from __future__ import annotations

import logging
import ntpath
import posixpath
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Case, Value, When
from django.db.models.functions import Least
from django.utils import timezone

from gpus_app import device_settings, memory_settings, selectors, watch_settings
from gpus_app.core.router_files import SUFFIXES, is_router_file
from gpus_app.eligibility import refresh_eligibility
from gpus_app.models import LATE_AFTER, Dialect, Host, HostSetting, OsFamily
from gpus_app.signals import host_seen, target_set
from quartermaster_site import env
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.services import Started, start_job

log = logging.getLogger(__name__)


def register_host(*, slug: str, name: str, os_family: str = OsFamily.LINUX) -> Host:
    """The row of a host; an existing one is returned as it is."""
    if not env.SLUG.fullmatch(slug):
        raise Refused("A host's slug has lower-case letters, digits and dashes.", fields={"slug": "Not a slug."})
    host, _ = Host.objects.get_or_create(slug=slug, defaults={"name": name[:100], "os_family": os_family})
    return host


def rename_host(*, host: Host, name: str, actor: Actor) -> Host:
    require(actor.user, Level.MANAGE)
    name = name.strip()
    if not 1 <= len(name) <= 100:
        raise Refused("The name is missing or too long.", fields={"name": "Between 1 and 100 characters."})
    with transaction.atomic():
        if name != host.name:
            record(actor, "host.rename", subject=host, host_slug=host.slug, changes={"name": [host.name, name]})
            host.name = name
            host.save(update_fields=["name"])
    return host


def save_memory_settings(*, host: Host, values: Mapping[str, Any], version: int, actor: Actor) -> HostSetting:
    """Store the memory section if it is still at `version`. The values that are stored change nothing, at any version.

    Raises Refused with a message per field, EditConflict when somebody saved meanwhile.
    """
    require(actor.user, Level.EDIT, host)
    wanted = memory_settings.cleaned(values)
    with transaction.atomic():
        row, changed = save_section(host, memory_settings.SECTION, wanted, version, actor)
        if changed:
            request_plan(host=host, actor=actor)
    return row


def save_device_settings(*, host: Host, values: Mapping[str, Any], version: int, actor: Actor) -> HostSetting:
    """Which devices plans may use; the same errors as above. Takes effect with the next planning, which it asks for."""
    require(actor.user, Level.EDIT, host)
    wanted = device_settings.cleaned(values)
    with transaction.atomic():
        row, changed = save_section(host, device_settings.SECTION, wanted, version, actor)
        if changed:
            refresh_eligibility(selectors.get_host(host.slug))
            request_plan(host=host, actor=actor)
    return row


def save_watch_settings(*, host: Host, seconds: int | None, version: int, actor: Actor) -> HostSetting:
    """How often the host looks at its folders: None for the default, 0 for never.

    Raises Refused with a message for the field, EditConflict when somebody saved meanwhile.
    """
    require(actor.user, Level.MANAGE)
    return save_section(host, watch_settings.SECTION, watch_settings.cleaned(seconds), version, actor)[0]


def save_section(
    host: Host, section: str, wanted: dict[str, Any], version: int, actor: Actor
) -> tuple[HostSetting, bool]:
    """The row of a settings section with `wanted` as its values, and whether that changed anything."""
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        row = HostSetting.objects.filter(host=host, section=section).first()
        row = row or HostSetting(host=host, section=section)
        if wanted == row.values:
            return row, False
        if row.version != version:
            who = str(row.changed_by or "somebody")
            raise EditConflict(
                f"{who} saved these settings meanwhile.",
                saved=dict(row.values),
                version=row.version,
                by=who,
                at=row.changed_at,
            )
        changes = _changes(row.values, wanted)
        row.values, row.version = wanted, version + 1
        row.changed_by, row.changed_at = actor.user, timezone.now()
        row.save()
        record(actor, f"settings.{section}", subject=row, label=host.name, host_slug=host.slug, changes=changes)
    return row, True


def request_plan(*, host: Host, actor: Actor, parent: Job | None = None) -> Started:
    """Have the host's models planned anew. Requests that come before planning begins are one."""
    return start_job(kind="plan_host", host=host, actor=actor, parent=parent, joins=[State.QUEUED])


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    keys = sorted({*before, *after})
    return {key: [before.get(key), after.get(key)] for key in keys if before.get(key) != after.get(key)}


def save_target(
    *,
    host: Host,
    path: str | None = None,
    dialect: str | None = None,
    seen: Mapping[str, str] | None = None,
    actor: Actor,
) -> Host:
    """Where the router's file lies on the host and in which dialect. None keeps what is set, a blank path is no target.

    `seen` is the target that the person had before their eyes, as far as a form carried it. Raises Refused with a
    message per field, EditConflict when somebody set something else meanwhile. Either goes into the file: the folder
    is where its companions lie.
    """
    require(actor.user, Level.MANAGE)
    wanted = {"publish_path": path.strip() if path is not None else None, "publish_dialect": dialect}
    with transaction.atomic():
        held = Host.objects.select_for_update().get(pk=host.pk)
        before = {name: getattr(held, name) for name in wanted}
        after = {name: before[name] if value is None else value for name, value in wanted.items()}
        _check_target(after, held.os_family)
        if after == before:
            return held
        if any(after[name] != before[name] != shown for name, shown in (seen or {}).items()):
            raise _target_conflict(held, before)
        if after["publish_path"] != before["publish_path"]:
            held.written_sha256, held.written_at = "", None
        held.publish_path, held.publish_dialect = after["publish_path"], after["publish_dialect"]
        held.save(update_fields=[*after, "written_sha256", "written_at"])
        record(actor, "host.target", subject=held, host_slug=held.slug, changes=_changes(before, after))
        target_set.send(sender=Host, host=held)
        request_plan(host=held, actor=actor)
    return held


def _check_target(target: Mapping[str, str], os_family: str) -> None:
    path, problems = target["publish_path"], {}
    if path and not is_absolute(path, os_family):
        problems["path"] = "Write the whole path of the file, from the root on."
    if len(path) > 1024 or not path.isprintable():
        problems["path"] = "This is not a usable path."
    if path.endswith(("/", "\\")):
        problems["path"] = "This names a folder: add the name of the file."
    elif path and not problems and not is_router_file(path):
        problems["path"] = f"The name of a router's file ends in {', '.join(SUFFIXES)}."
    if target["publish_dialect"] not in Dialect.values:
        problems["dialect"] = f"One of {', '.join(Dialect.values)}."
    if problems:
        raise Refused("The target cannot be used.", fields=problems)


def _target_conflict(host: Host, saved: Mapping[str, str]) -> EditConflict:
    last = AuditEntry.objects.filter(action="host.target", host_slug=host.slug).first()
    who = last.actor if last else "Somebody"
    now = f"{saved['publish_path'] or 'no path'}, for {Dialect(saved['publish_dialect']).label}"
    message = f"{who} changed the target meanwhile. It is now {now}. Send this again to set yours instead."
    return EditConflict(message, saved=dict(saved), version=0, by=who, at=last.at if last else None)


def is_absolute(path: str, os_family: str) -> bool:
    """By the rules of the host's system, which may be another than ours."""
    if os_family == OsFamily.WINDOWS:
        return ntpath.isabs(path) and bool(ntpath.splitdrive(path)[0])
    return posixpath.isabs(path)


def start_probe(*, host: Host, actor: Actor) -> Started:
    """Ask the host for its devices and memory."""
    if actor.user is not None:
        require(actor.user, Level.OPERATE, host)
    started = start_job(kind="probe_devices", host=host, actor=actor)
    if started.created and actor.user is not None:
        record(actor, "host.probe", subject=host, host_slug=host.slug)
    return started


def note_heartbeat(*, slug: str, worker: str, version: str, sent_at: float, protocol: int = 0) -> None:
    """A worker of the host is alive. Heartbeats of hosts that nobody registered are ignored.

    A worker whose messages are of another version, or whose host is paused, is asked for nothing.
    """
    now = timezone.now()
    skew = round(now.timestamp() - sent_at, 1)
    # A message that waited in the queue looks like a clock that is behind, so that of several the least is believed.
    least = Case(When(last_seen_at__gt=now - LATE_AFTER, then=Least("clock_skew_seconds", Value(skew))), default=skew)
    Host.objects.filter(slug=slug).update(
        last_seen_at=now,
        worker_id=worker[:64],
        worker_version=version[:32],
        worker_protocol=protocol,
        clock_skew_seconds=least,
    )
    host = selectors.hosts().filter(slug=slug).first()
    if host is None or host.why_jobs_wait:
        return
    if host.probed_at is None and not host.jobs.filter(kind="probe_devices").exists():
        start_probe(host=host, actor=Actor())
    host_seen.send(sender=Host, host=host)
