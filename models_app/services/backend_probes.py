"""Asking a host what its registered executables are, and storing what they say. Their texts are foreign."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Backend, Host
from gpus_app.services import request_plan
from models_app import convert
from models_app.core.launch.backends import kind_of
from models_app.core.launch.program_text import MAX_DEVICES, MAX_FLAG_CHARACTERS, MAX_FLAGS, MAX_NAME_CHARACTERS
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Unavailable
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.services import Started, start_job
from quartermaster_site.jobs.untrusted import ReportRefused

log = logging.getLogger(__name__)
ASK_AGAIN_AFTER = timedelta(days=1)
MAX_PROGRAMS = 64
MAX_NOTES = 8
MAX_TEXT = 500
_FLAG = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}|")
PLANNED_WITH = ("kind", "flags", "devices", "joined_lora_scale")
"""What plans depend on."""


def start_backend_probe(*, host: Host, backends: Iterable[Backend], fresh: bool = False, actor: Actor) -> Started:
    """Ask these executables what they are. `fresh`: also those whose answer the host's worker remembers."""
    if actor.user is not None:
        require(actor.user, Level.MANAGE)
    rows = list(backends)
    inputs = {"programs": [[row.pk, row.path] for row in rows], "fresh": fresh}
    subject = ("backend", str(rows[0].pk), str(rows[0])) if len(rows) == 1 else ("", "", "")
    started = start_job(kind="probe_backend", host=host, inputs=inputs, subject=subject, actor=actor)
    if started.created and actor.user is not None:
        record(actor, "backend.probe", subject=host, host_slug=host.slug)
    return started


def probe_new(*, backend: Backend, actor: Actor) -> None:
    """The same for one that was just registered; without a broker it is asked another time."""
    try:
        start_backend_probe(host=backend.host, backends=[backend], actor=actor)
    except Unavailable:
        log.warning("%s is not asked what it is: the broker is away", backend)


def probe_when_due(host: Host) -> None:
    """Ask those that were never asked, or not for a day: a build may have been replaced in its place.

    The host's worker remembers its answer for a file that has not changed.
    """
    since = timezone.now() - ASK_AGAIN_AFTER
    due = [row for row in host.backends.all() if row.probed_at is None or row.probed_at < since]
    if not due or not host.is_reachable:
        return
    try:
        start_backend_probe(host=host, backends=due[:MAX_PROGRAMS], actor=Actor())
    except Unavailable:
        log.warning("the backends of %s are not asked what they are: the broker is away", host)


def store_probes(*, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    """Keep what was learned, row by row. Where nothing could be, the earlier facts stay and the reason is shown."""
    if job.host is None:
        return {}
    programs = [_program(item) for item in untrusted.items(data.get("programs"), "programs", MAX_PROGRAMS)]
    changed = False
    for number, path, facts in programs:
        row = Backend.objects.filter(pk=number, host=job.host, path=path).first()
        if row is not None:
            changed |= _store(row, facts)
    host = job.host
    if changed:
        transaction.on_commit(lambda: request_plan(host=host, actor=Actor(user=job.started_by), parent=job))
    numbers = [number for number, _, _ in programs]
    refused = [row for row in Backend.objects.filter(pk__in=numbers, host=host) if convert.is_refused(row)]
    return {"programs": len(programs), "refused": len(refused)}


def _store(row: Backend, facts: dict[str, Any]) -> bool:
    """Whether plans may come out differently now."""
    before = {key: row.probe.get(key) for key in PLANNED_WITH}
    row.probed_at = timezone.now()
    if facts["problem"]:
        row.probe = {**row.probe, "problem": facts["problem"]}
        row.save(update_fields=["probe", "probed_at"])
        return False
    row.banner_sha256, row.version, row.build = (facts.pop(key) for key in ("banner_sha256", "version", "build"))
    row.probe = facts
    row.save(update_fields=["probe", "probed_at", "banner_sha256", "version", "build"])
    return before != {key: facts.get(key) for key in PLANNED_WITH}


def _program(item: Any) -> tuple[int, str, dict[str, Any]]:
    """Number and path of a program, and what is stored of it. Raises ReportRefused."""
    facts = untrusted.mapping(item, "a program")
    number, path = untrusted.integer(facts.get("number"), "number", 1), untrusted.path(facts.get("path"), "path")
    kind = kind_of(untrusted.text(facts.get("kind", ""), "kind", 16))
    devices = facts.get("devices")
    notes = untrusted.items(facts.get("notes", []), "notes", MAX_NOTES)
    return (
        number,
        path,
        {
            "problem": untrusted.text(facts.get("problem"), "problem", MAX_TEXT),
            "kind": kind.name if kind else "",
            "version": untrusted.text(facts.get("version", ""), "version", 64),
            "build": untrusted.text(facts.get("build", ""), "build", 64),
            "banner_sha256": _sha256(facts.get("banner_sha256", "")),
            "size_bytes": untrusted.integer(facts.get("size_bytes", 0), "size_bytes"),
            "mtime_ns": untrusted.integer(facts.get("mtime_ns", 0), "mtime_ns", -untrusted.MAX_INT),
            "flags": [_flag(flag) for flag in untrusted.items(facts.get("flags", []), "flags", MAX_FLAGS)],
            "joined_lora_scale": untrusted.boolean(facts.get("joined_lora_scale", False), "joined_lora_scale"),
            "devices": None if devices is None else _devices(devices),
            "notes": [untrusted.text(note, "note", MAX_TEXT) for note in notes],
        },
    )


def _devices(value: Any) -> list[dict[str, Any]]:
    return [_device(item) for item in untrusted.items(value, "devices", MAX_DEVICES)]


def _device(item: Any) -> dict[str, Any]:
    device = untrusted.mapping(item, "a device")
    return {
        "id": untrusted.text(device.get("id"), "id", MAX_FLAG_CHARACTERS),
        "name": untrusted.text(device.get("name"), "name", MAX_NAME_CHARACTERS),
        "total_bytes": untrusted.integer(device.get("total_bytes", 0), "total_bytes"),
        "tag": untrusted.text(device.get("tag", ""), "tag", 16),
    }


def _flag(value: Any) -> str:
    flag = untrusted.text(value, "a flag", MAX_FLAG_CHARACTERS)
    if not _FLAG.fullmatch(flag):
        raise ReportRefused(f"{flag!r} is no flag")
    return flag


def _sha256(value: Any) -> str:
    digest = untrusted.text(value, "banner_sha256", 64)
    if not _SHA256.fullmatch(digest):
        raise ReportRefused("banner_sha256 is none")
    return digest
