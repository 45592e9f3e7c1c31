"""Samples of hosts: what is believed of them, the last one and a bounded past, and what devices learn from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app import selectors
from gpus_app.core.gpu_set import is_integrated
from gpus_app.core.readings import DeviceReading
from gpus_app.core.units import MIB
from gpus_app.eligibility import refresh_eligibility
from gpus_app.models import Device, Host, Telemetry, TelemetryPoint
from gpus_app.receivers import MAX_DEVICES, device_reading, is_same
from gpus_app.services import request_plan, start_probe
from gpus_app.telemetry_rows import SLOT_SECONDS, SLOTS
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.untrusted import ReportRefused

_WORTH_STORING_BYTES = 16 * MIB
"""A smaller change of what is free waits for the next one, or a minute."""
_HIGHER_BYTES = 32 * MIB
"""By so much the idle mark rises at least: each rise may renew plans."""
_READ_AGAIN_AFTER = timedelta(seconds=60)
_OTHERS, _DISKS, _NOTES = 5, 32, 32


def take_sample(slug: str, sample: Mapping[str, Any]) -> None:
    """Store a sample of a host, once. Raises ReportRefused for one that cannot be believed or was never ordered."""
    facts = checked(sample)
    run = untrusted.text(sample.get("run"), "run", 32)
    number = untrusted.integer(sample.get("number"), "number", 1)
    row = Telemetry.objects.select_related("host").filter(host__slug=slug).first()
    if row is None:
        raise ReportRefused(f"nobody ordered samples from {slug}")
    now = timezone.now()
    fresh = Telemetry.objects.filter(pk=row.pk).exclude(run=run, number__gte=number)
    if fresh.update(run=run, number=number, received_at=now, sample=facts):
        _remember(row.host, facts, now)
        _teach_devices(row.host, facts, now)


def checked(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample as it is stored: every figure within bounds, every list of a bounded length."""
    ram = sample.get("ram")
    return {
        "devices": [_device(item) for item in untrusted.items(sample.get("devices"), "devices", MAX_DEVICES)],
        "ram": None if ram is None else _sizes(ram, ("total_bytes", "available_bytes")),
        "cpu_percent": _figure(sample, "cpu_percent", 0, 100),
        "disks": [_disk(item) for item in untrusted.items(sample.get("disks", []), "disks", _DISKS)],
        "notes": [untrusted.text(item, "note", 300) for item in untrusted.items(sample.get("notes", []), "n", _NOTES)],
        "failed": [untrusted.text(item, "vendor", 16) for item in untrusted.items(sample.get("failed", []), "f", 16)],
    }


def _device(item: Any) -> dict[str, Any]:
    facts = untrusted.mapping(item, "a device")
    others = [
        untrusted.items(other, "a process", 2) for other in untrusted.items(facts.get("others", []), "o", _OTHERS)
    ]
    reading = device_reading(facts)
    return {
        **asdict(reading),
        "integrated": is_integrated(reading),
        "reserved_bytes": untrusted.integer(facts.get("reserved_bytes", 0), "reserved_bytes"),
        "temperature_celsius": _figure(facts, "temperature_celsius", -100, 300),
        "utilisation_percent": _figure(facts, "utilisation_percent", 0, 100),
        "power_watts": _figure(facts, "power_watts", 0, 10_000),
        "ours_bytes": untrusted.optional_integer(facts.get("ours_bytes"), "ours_bytes"),
        "ours_note": untrusted.text(facts.get("ours_note", ""), "ours_note", 200),
        "others": [
            [untrusted.text(other[0], "name", 60), untrusted.integer(other[1], "bytes")]
            for other in others
            if len(other) == 2
        ],
    }


def _disk(item: Any) -> dict[str, Any]:
    facts = untrusted.mapping(item, "a disk")
    path, problem = untrusted.path(facts.get("path"), "path"), untrusted.text(facts.get("problem", ""), "problem", 200)
    return {"path": path, "problem": problem, **_sizes(facts, ("total_bytes", "free_bytes"))}


def _sizes(value: Any, names: Iterable[str]) -> dict[str, int]:
    facts = untrusted.mapping(value, "sizes")
    return {name: untrusted.integer(facts.get(name, 0), name) for name in names}


def _figure(facts: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    value = facts.get(name)
    return None if value is None else round(untrusted.number(value, name, low, high), 1)


def memory_of(device: Mapping[str, Any]) -> tuple[int, int]:
    """Used and total bytes of a device of a sample: what an integrated one borrows is its memory too (sizing.md 17)."""
    shared = bool(device["integrated"])
    used = device["used_bytes"] + (device["shared_used_bytes"] if shared else 0)
    return used, device["total_bytes"] + (device["shared_total_bytes"] if shared else 0)


def _remember(host: Host, facts: Mapping[str, Any], now: datetime) -> None:
    """The newest sample of a slot is its point; the one of an hour ago makes room."""
    ram = facts["ram"]
    values = {
        "devices": {
            str(each["index"]): [*memory_of(each), each["utilisation_percent"], each["temperature_celsius"]]
            for each in facts["devices"]
        },
        "ram": [ram["total_bytes"] - ram["available_bytes"], ram["total_bytes"]] if ram else None,
    }
    slot = int(now.timestamp() // SLOT_SECONDS) % SLOTS
    TelemetryPoint.objects.bulk_create(
        [TelemetryPoint(host=host, slot=slot, at=now, values=values)],
        update_conflicts=True,
        unique_fields=["host", "slot"],
        update_fields=["at", "values"],
    )


def _teach_devices(host: Host, facts: Mapping[str, Any], now: datetime) -> None:
    """What is free now goes to the stored devices, and raises their idle marks; other devices are asked for anew."""
    stored = {device.index: device for device in host.devices.all()}
    readings = [(device_reading(each), each["ours_bytes"]) for each in facts["devices"]]
    known = [(stored[reading.index], reading, ours) for reading, ours in readings if _is_known(stored, reading)]
    if not facts["failed"] and len(known) != max(len(stored), len(readings)):
        _probe_again(host, now)
    rises = [_learn(device, reading, ours, now) for device, reading, ours in known]
    changed = [device for device, _, _ in known if device.read_at == now]
    Device.objects.bulk_update(
        changed,
        ["free_bytes", "shared_free_bytes", "free_mark_bytes", "shared_free_mark_bytes", "ours_bytes", "read_at"],
    )
    if any(rises):
        _renew_plans(host)


def _is_known(stored: Mapping[int, Device], reading: DeviceReading) -> bool:
    return reading.index in stored and is_same(stored[reading.index], reading)


def _probe_again(host: Host, now: datetime) -> None:
    """A card came, went or changed. A probe says which, and is not asked for twice a minute."""
    if host.probed_at is None or now - host.probed_at > _READ_AGAIN_AFTER:
        start_probe(host=host, actor=Actor())


def _learn(device: Device, reading: DeviceReading, ours_bytes: int | None, now: datetime) -> bool:
    """Set what the reading says, where it is worth a write; whether the idle mark rose.

    What our own launches hold will be free again, so it counts as free for the mark: a worker that starts while models
    are loaded would else never see the card empty.
    """
    free = max(0, reading.total_bytes - reading.used_bytes)
    shared_free = max(0, reading.shared_total_bytes - reading.shared_used_bytes)
    idle = free if device.integrated else min(reading.total_bytes, free + (ours_bytes or 0))
    higher = (idle - device.free_mark_bytes, shared_free - device.shared_free_mark_bytes)
    rose = max(higher) >= _HIGHER_BYTES
    steps = (
        free - device.free_bytes,
        shared_free - device.shared_free_bytes,
        (ours_bytes or 0) - (device.ours_bytes or 0),
    )
    moved = sum(map(abs, steps)) >= _WORTH_STORING_BYTES or (ours_bytes is None) != (device.ours_bytes is None)
    if rose or moved or now - device.read_at > _READ_AGAIN_AFTER:
        device.free_bytes, device.shared_free_bytes, device.ours_bytes = free, shared_free, ours_bytes
        device.read_at = now
    if rose:
        device.free_mark_bytes = max(idle, device.free_mark_bytes)
        device.shared_free_mark_bytes = max(shared_free, device.shared_free_mark_bytes)
    return rose


def _renew_plans(host: Host) -> None:
    """The budget may be larger than plans know."""
    with transaction.atomic():
        refresh_eligibility(selectors.get_host(host.slug))
        if host.jobs.filter(kind="plan_host").exists():
            transaction.on_commit(lambda: request_plan(host=host, actor=Actor()))


def points(host: Host, until: datetime) -> list[TelemetryPoint]:
    """The hour up to `until`, the oldest first."""
    since = until - timedelta(seconds=SLOT_SECONDS * SLOTS)
    return list(TelemetryPoint.objects.filter(host=host, at__gt=since, at__lte=until).order_by("at"))
