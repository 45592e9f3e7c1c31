"""Storing what a host says about checks against llama.cpp. Nothing of it is taken on trust."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app.core.catalog import MemoryUse
from models_app.core.errors import VerifyError
from models_app.core.planning.projection import HOST
from models_app.core.planning.verify import Comparison, Measured, compare, streams_weights
from models_app.core.units import MIB
from models_app.models import CheckProgram, Row, Verification
from models_app.services.check_facts import refresh_excesses
from models_app.services.checks import MOST_SERVERS, projection_from
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.untrusted import ReportRefused
from quartermaster_site.version import product_version

MAX_DEVICES = 64
KEPT_PER_ROW = 50
_MOST_BYTES = 1 << 60
_TERMS = ("model_bytes", "context_bytes", "compute_bytes")


def store_programs(*, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    """What belongs to each server that was asked about; plans are renewed where a build is another one now."""
    found, renew = 0, False
    asked = {program.server: program for program in CheckProgram.objects.select_for_update().filter(host=job.host)}
    for item in untrusted.items(data.get("programs"), "programs", MOST_SERVERS):
        facts = untrusted.mapping(item, "a program")
        program = asked.get(untrusted.path(facts.get("server"), "server"))
        if program is None:
            raise ReportRefused("a program that nobody asked about")
        before = program.build
        program.path = untrusted.path(facts.get("path", ""), "path")
        program.build = untrusted.text(facts.get("build", ""), "build", 200)
        program.problem = untrusted.text(facts.get("problem", ""), "problem", 500)
        program.looked_at = timezone.now()
        program.save()
        found += bool(program.path)
        renew |= before != program.build
    if renew and job.host is not None and refresh_excesses(job.host):
        _plan_again(job.host, job)
    return {"programs": found}


def store_check(*, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    """The measured figures beside ours. Raises ReportRefused for what cannot be believed or compared."""
    row = Row.objects.select_related("host").filter(pk=int(job.object_id or 0), host=job.host).first()
    if row is None:
        return {}
    devices = [_use(item) for item in untrusted.items(data.get("devices"), "devices", MAX_DEVICES)]
    measured = Measured(tuple(devices), _use(data.get("host"), HOST))
    asked = job.inputs
    ours = projection_from(asked["streaming" if streams_weights(measured) else "plain"])
    try:
        comparison = compare(measured, ours)
    except VerifyError as error:
        raise ReportRefused(error.message) from error
    program = _program(row.host, asked["server"], data)
    excess = [_total(use) for use in comparison.difference.devices]
    Verification.objects.update_or_create(
        row=row,
        launch=asked["launch"],
        build=program.build,
        defaults={
            "program": program,
            "version": product_version(),
            "profile_id": asked["profile"][:340],
            "figures": _figures(comparison),
            "notes": asked["notes"],
            "agreement_percent": comparison.agreement_percent,
            "device_excess_bytes": max(0, *excess, 0),
            "ram_excess_bytes": max(0, _total(comparison.difference.host)),
            "checked_at": timezone.now(),
            "checked_by": job.started_by,
            "job": job,
        },
    )
    old = row.verifications.values_list("pk", flat=True)[KEPT_PER_ROW:]
    Verification.objects.filter(pk__in=list(old)).delete()
    if refresh_excesses(row.host):
        _plan_again(row.host, job)
    return {"agreement": f"{comparison.agreement_percent:.2f} %", "build": program.build}


def _program(host: Host, server: str, data: dict[str, Any]) -> CheckProgram:
    """The program that answered; what it says of its build is what is in use now."""
    facts = {
        "path": untrusted.path(data.get("path"), "path"),
        "build": untrusted.text(data.get("build", ""), "build", 200),
        "problem": "",
        "looked_at": timezone.now(),
    }
    return CheckProgram.objects.update_or_create(host=host, server=server, defaults=facts)[0]


def _use(value: Any, name: str = "") -> MemoryUse:
    """Bytes of one place: whole MiB, as the program prints them."""
    facts = untrusted.mapping(value, "a device")
    sizes = [untrusted.integer(facts.get(term), term, 0, _MOST_BYTES) for term in _TERMS]
    if any(size % MIB for size in sizes):
        raise ReportRefused("a figure that is no whole MiB")
    return MemoryUse(name or untrusted.text(facts.get("name"), "name", 200), *sizes)


def _figures(comparison: Comparison) -> list[list[Any]]:
    measured, difference = comparison.measured, comparison.difference
    pairs = zip((*measured.devices, measured.host), (*difference.devices, difference.host), strict=True)
    return [
        [theirs.name, _sizes(theirs), [seen - more for seen, more in zip(_sizes(theirs), _sizes(off), strict=True)]]
        for theirs, off in pairs
    ]


def _sizes(use: MemoryUse) -> list[int]:
    return [getattr(use, term) for term in _TERMS]


def _total(difference: MemoryUse) -> int:
    return sum(_sizes(difference))


def _plan_again(host: Host, job: Job) -> None:
    transaction.on_commit(lambda: request_plan(host=host, actor=Actor(user=job.started_by), parent=job))
