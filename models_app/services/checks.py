"""Checks against llama.cpp: finding the program, asking it about a launch, storing what it says."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from gpus_app.models import Host, HostSetting
from gpus_app.services import request_plan
from models_app import check_settings, convert
from models_app.check_settings import check_settings_of
from models_app.core.catalog import MemoryUse, Projection
from models_app.core.errors import VerifyError
from models_app.core.export.entry import plan_env
from models_app.core.launch.backends import kind_of
from models_app.core.planning.table import model_table
from models_app.core.plans.verification import FIT_PARAMS_SECONDS, question_of
from models_app.core.settings import Override
from models_app.models import CheckProgram, Row
from models_app.services.check_facts import launch_digest
from models_app.services.planning import HostFacts, Preview, preview_plan
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, Refused, Unavailable
from quartermaster_site.jobs.services import Started, start_job

log = logging.getLogger(__name__)
CHECK_KIND = "verify_memory"
FIND_KIND = "find_checker"
SUBJECT = "row"
MOST_SERVERS = 64
_LOOK_AGAIN_AFTER = timedelta(days=1)
"""A build may be replaced in its place."""


def start_check(*, row: Row, override: Override | None = None, facts: HostFacts | None = None, actor: Actor) -> Started:
    """Have the host ask llama.cpp about the plan of a row, under an override that is not stored (None: the stored one).

    Raises Refused where there is nothing to compare.
    """
    require(actor.user, Level.OPERATE, row)
    inputs = check_inputs(row, preview_plan(row=row, override=override, facts=facts))
    subject = (SUBJECT, str(row.pk), row.served_id)
    started = start_job(kind=CHECK_KIND, host=row.host, inputs=inputs, subject=subject, actor=actor)
    if started.created:
        record(actor, "model.check", subject=row, host_slug=row.host.slug)
    return started


def check_inputs(row: Row, preview: Preview) -> dict[str, Any]:
    """What the host is handed, and beside it what its answer will be compared with."""
    plan = preview.base
    if preview.header is None or plan.engine:
        raise Refused("There is no llama.cpp plan of this model to check.")
    try:
        question = question_of(plan, model_table(preview.header))
    except VerifyError as error:
        raise Refused(f"This plan cannot be checked: {error.message}.") from error
    return {
        "server": plan.argv[0],
        "named": check_settings_of(row.host).program,
        "words": list(question.words),
        "variables": dict(item.split("=", 1) for item in plan_env(plan, preview.budget)),
        "devices": len(question.plain.devices),
        "seconds": FIT_PARAMS_SECONDS,
        "launch": launch_digest(row, plan),
        "profile": plan.profile_id,
        "notes": list(question.notes),
        "plain": _figures(question.plain),
        "streaming": _figures(question.streaming),
    }


def _figures(projection: Projection) -> list[list[Any]]:
    return [
        [use.name, use.model_bytes, use.context_bytes, use.compute_bytes]
        for use in (*projection.devices, projection.host)
    ]


def projection_from(figures: list[list[Any]]) -> Projection:
    """The projection that `check_inputs` wrote down."""
    *devices, host = (MemoryUse(*figure) for figure in figures)
    return Projection("exact", tuple(devices), host)


def servers_of(host: Host) -> list[str]:
    """The llama.cpp servers that plans of a host may name."""
    settings = convert.core_settings(host)
    named = [entry.path for entry in settings.backends if _is_llama(entry.kind) and entry.path.strip()]
    return list(dict.fromkeys(named or [settings.server_exe]))[:MOST_SERVERS]


def _is_llama(kind: str) -> bool:
    found = kind_of(kind)
    return found is not None and found.name == "llama"


def look_when_due(host: Host) -> None:
    """After a planning: have programs looked for that nobody looked for yet, or not for long."""
    servers = servers_of(host)
    CheckProgram.objects.filter(host=host, verifications=None).exclude(server__in=servers).delete()
    due = Q(asked_at__gt=timezone.now() - _LOOK_AGAIN_AFTER)
    fresh = set(CheckProgram.objects.filter(due, host=host).values_list("server", flat=True))
    missing = [server for server in servers if server not in fresh]
    if missing:
        _look_for(host, missing, Actor())


def look_for_programs(*, host: Host, server: str = "", actor: Actor) -> Started | None:
    """Have the host look for llama-fit-params beside its servers, now. None without a broker."""
    require(actor.user, Level.OPERATE, host)
    servers = [*servers_of(host), *([server] if server else [])]
    return _look_for(host, list(dict.fromkeys(servers)), actor)


def _look_for(host: Host, servers: list[str], actor: Actor) -> Started | None:
    now = timezone.now()
    for server in servers:
        CheckProgram.objects.update_or_create(host=host, server=server[:1024], defaults={"asked_at": now})
    inputs = {"servers": servers, "named": check_settings_of(host).program}
    try:
        return start_job(kind=FIND_KIND, host=host, inputs=inputs, actor=actor, joins=())
    except Unavailable as error:
        log.warning("%s: nobody looks for llama-fit-params: %s", host.slug, error)
        return None


def save_check_settings(*, host: Host, values: Mapping[str, Any], version: int, actor: Actor) -> HostSetting:
    """The section of a host, if it is still at `version`. Naming a program takes an administrator.

    Raises Refused with a message per field, EditConflict when somebody saved meanwhile.
    """
    require(actor.user, Level.EDIT, host)
    wanted = check_settings.cleaned(values, host.os_family)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        row = HostSetting.objects.filter(host=host, section=check_settings.SECTION).first()
        row = row or HostSetting(host=host, section=check_settings.SECTION)
        if wanted == row.values:
            return row
        before = dict(row.values)
        if wanted.get(check_settings.PROGRAM_KEY) != before.get(check_settings.PROGRAM_KEY):
            require(actor.user, Level.MANAGE)
        if row.version != version:
            who = str(row.changed_by or "somebody")
            raise EditConflict(
                f"{who} saved these settings meanwhile.", saved=before, version=row.version, by=who, at=row.changed_at
            )
        row.values, row.version = wanted, version + 1
        row.changed_by, row.changed_at = actor.user, timezone.now()
        row.save()
        keys = sorted({*before, *wanted})
        changes = {key: [before.get(key), wanted.get(key)] for key in keys if before.get(key) != wanted.get(key)}
        record(actor, "settings.checks", subject=row, label=host.name, host_slug=host.slug, changes=changes)
        CheckProgram.objects.filter(host=host).update(asked_at=timezone.now() - 2 * _LOOK_AGAIN_AFTER)
        request_plan(host=host, actor=actor)
    return row
