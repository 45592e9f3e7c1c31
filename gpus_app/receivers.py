"""Storing what a host says about its devices."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.core.gpu_set import is_integrated
from gpus_app.core.readings import DeviceReading
from gpus_app.eligibility import refresh_eligibility
from gpus_app.models import Device, Host, OsFamily
from gpus_app.services import request_plan
from quartermaster_site.access.audit import Actor
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.receiving import Receiver

MAX_DEVICES = 64


class DeviceReceiver(Receiver):
    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        """Replace the host's devices; a probe that was stopped, or could not ask each of them, changes none."""
        if partial or job.host is None:
            return {}
        host = Host.objects.select_for_update().get(pk=job.host.pk)
        family = untrusted.text(data.get("os_family", "linux"), "os_family", 8)
        host.os_family = family if family in OsFamily.values else OsFamily.LINUX
        host.cpu_count = untrusted.integer(data.get("cpu_count", 0), "cpu_count", 0, 1 << 16)
        host.ram_total_bytes = untrusted.integer(data.get("ram_total_bytes", 0), "ram_total_bytes")
        host.ram_available_bytes = untrusted.integer(data.get("ram_available_bytes", 0), "ram_available_bytes")
        readings = [device_reading(item) for item in untrusted.items(data.get("devices", []), "devices", MAX_DEVICES)]
        notes = [untrusted.text(item, "note", 300) for item in untrusted.items(data.get("notes", []), "notes", 32)]
        failed = untrusted.items(data.get("failed", []), "failed", 16)
        host.probe_note = "; ".join(notes)[:500] if failed or not readings else ""
        host.probed_at = timezone.now()
        host.save()
        if not failed:
            _store(host, readings)
        eligible = refresh_eligibility(host)
        if host.jobs.filter(kind="plan_host").exists():
            # What is free now may be the budget; before the first planning there is nothing to renew.
            transaction.on_commit(lambda: request_plan(host=host, actor=Actor(), parent=job))
        return {"devices": len(readings), "eligible": len(eligible), "notes": notes}


def device_reading(item: Any) -> DeviceReading:
    """What a host says of one device. Raises ReportRefused."""
    facts = untrusted.mapping(item, "a device")
    integrated = facts.get("integrated")
    return DeviceReading(
        index=untrusted.integer(facts.get("index"), "index", 0, 1023),
        name=untrusted.text(facts.get("name"), "name", 200),
        vendor=untrusted.text(facts.get("vendor", ""), "vendor", 16),
        uuid=untrusted.text(facts.get("uuid", ""), "uuid", 100),
        total_bytes=untrusted.integer(facts.get("total_bytes"), "total_bytes"),
        used_bytes=untrusted.integer(facts.get("used_bytes", 0), "used_bytes"),
        shared_total_bytes=untrusted.integer(facts.get("shared_total_bytes", 0), "shared_total_bytes"),
        shared_used_bytes=untrusted.integer(facts.get("shared_used_bytes", 0), "shared_used_bytes"),
        integrated=None if integrated is None else untrusted.boolean(integrated, "integrated"),
    )


def _store(host: Host, readings: list[DeviceReading]) -> None:
    now = timezone.now()
    host.devices.exclude(index__in=[reading.index for reading in readings]).delete()
    known = {device.index: device for device in host.devices.all()}
    for reading in readings:
        before = known.get(reading.index)
        free = max(reading.total_bytes - reading.used_bytes, 0)
        shared_free = max(reading.shared_total_bytes - reading.shared_used_bytes, 0)
        # Another card in the same slot starts with a mark of its own.
        same = before if before and is_same(before, reading) else None
        Device.objects.update_or_create(
            host=host,
            index=reading.index,
            defaults={
                "name": reading.name,
                "vendor": reading.vendor,
                "uuid": reading.uuid,
                "total_bytes": reading.total_bytes,
                "free_bytes": free,
                "shared_total_bytes": reading.shared_total_bytes,
                "shared_free_bytes": shared_free,
                "free_mark_bytes": max(free, same.free_mark_bytes if same else 0),
                "shared_free_mark_bytes": max(shared_free, same.shared_free_mark_bytes if same else 0),
                "integrated": is_integrated(reading),
                "read_at": now,
            },
        )


def is_same(device: Device, reading: DeviceReading) -> bool:
    """Whether the stored device is the one that was read, and not another in its place."""
    return (device.uuid, device.name, device.total_bytes, device.shared_total_bytes) == (
        reading.uuid,
        reading.name,
        reading.total_bytes,
        reading.shared_total_bytes,
    )
