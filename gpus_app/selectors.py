"""Questions about hosts: their state, their devices, and the memory that planning may use."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet

from gpus_app import device_settings, watch_settings
from gpus_app.core.budget import (
    PLACEHOLDER_RAM_GIB,
    Budget,
    auto_vram_target,
    machine_budget,
    recommended_ram_gib,
    recommended_vram_gib,
    seed_budget,
)
from gpus_app.core.gpu_set import DevicePolicy, GpuDevice, GpuSet, fold, gpu_set
from gpus_app.core.readings import DeviceReading, MemoryReading
from gpus_app.core.units import GIB, to_gib
from gpus_app.device_settings import DeviceSettings
from gpus_app.memory_settings import DEFAULT_OVERHEAD_GIB, DEFAULT_TTL_SECONDS, SECTION, MemorySettings
from gpus_app.models import Device, Host, HostSetting
from gpus_app.watch_settings import WatchSettings
from quartermaster_site.access.permissions import Level, level_of, require
from quartermaster_site.errors import NotFound


def hosts() -> QuerySet[Host]:
    """All hosts with devices and settings, in three queries."""
    return Host.objects.select_related("agent").prefetch_related("devices", "settings")


def get_host(slug: str, among: QuerySet[Host] | None = None) -> Host:
    """One host by its slug, for those who act for nobody; NotFound. `among`: with what the caller needs of it."""
    host = (hosts() if among is None else among).filter(slug=slug).first()
    if host is None:
        raise NotFound(f"There is no host {slug!r}.")
    return host


def host_for(user: Any, slug: str, level: Level = Level.VIEW, among: QuerySet[Host] | None = None) -> Host:
    """The same for a person, who needs `level` on it. NotFound where it is hidden from them, else NotAllowed."""
    host = get_host(slug, among)
    if level_of(user, host) < Level.VIEW:
        raise NotFound(f"There is no host {slug!r}.")
    require(user, level, host)
    return host


def section(host: Host, name: str) -> HostSetting:
    """A settings section; an unsaved one of version 0 where nobody saved it yet."""
    if name in host.tried:
        return host.tried[name]
    found = next((row for row in host.settings.all() if row.section == name), None)
    return found or HostSetting(host=host, section=name)


def with_section(host: Host, name: str, values: Mapping[str, Any]) -> Host:
    """The host as it would be with these values of a section. It is never saved."""
    tried = copy(host)
    tried.tried = {**host.tried, name: HostSetting(host=host, section=name, values=dict(values))}
    return tried


def readings(host: Host, *, idle: bool = False) -> list[DeviceReading]:
    """The stored devices as the core takes them; `idle`: with the most that was ever seen free on each."""
    return [_reading(device, idle) for device in host.devices.all()]


def _reading(device: Device, idle: bool) -> DeviceReading:
    free, shared_free = device.free_bytes, device.shared_free_bytes
    if idle:
        free, shared_free = max(free, device.free_mark_bytes), max(shared_free, device.shared_free_mark_bytes)
    return DeviceReading(
        index=device.index,
        name=device.name,
        total_bytes=device.total_bytes,
        used_bytes=max(0, device.total_bytes - free),
        shared_total_bytes=device.shared_total_bytes,
        shared_used_bytes=max(0, device.shared_total_bytes - shared_free),
        integrated=device.integrated,
        vendor=device.vendor,
        uuid=device.uuid,
    )


def device_policy(host: Host) -> DevicePolicy:
    """Which devices plans may use, by the settings of the host."""
    return device_settings.policy_of(section(host, device_settings.SECTION).values)


def eligible_devices(host: Host) -> GpuSet:
    """The devices that plans use, as they are now."""
    used = {device.index for device in idle_devices(host).devices}
    return gpu_set([reading for reading in readings(host) if reading.index in used], device_policy(host))


def idle_devices(host: Host) -> GpuSet:
    """The same devices as they are when nothing runs. Plans are made for that moment: they are renewed while models
    are loaded, and must not shrink with every model that is.
    """
    return gpu_set(readings(host, idle=True), device_policy(host))


def measured_devices(host: Host) -> dict[int, GpuDevice]:
    """All devices by their index, as they are now: with what they borrow from the host where that counts, and nothing
    reserved.
    """
    policy = replace(device_policy(host), reserve_gib={})
    return {reading.index: fold(reading, policy) for reading in readings(host)}


def unused_devices(host: Host) -> tuple[GpuDevice, ...]:
    """The devices of the machine that plans do not use."""
    policy, used = device_policy(host), {device.index for device in idle_devices(host).devices}
    return tuple(fold(reading, policy) for reading in readings(host) if reading.index not in used)


def ram_reading(host: Host) -> MemoryReading | None:
    """None before the first probe."""
    if not host.ram_total_bytes:
        return None
    return MemoryReading(total_bytes=host.ram_total_bytes, available_bytes=host.ram_available_bytes)


def target_vram_gib(host: Host) -> float:
    """The pooled VRAM target: what was typed, else what the idle devices have free; 0 is a CPU-only plan."""
    values = section(host, SECTION).values
    idle = idle_devices(host)
    target = seed_budget(values.get("targetVramGB"), recommended_vram_gib(idle), 0.0)
    return auto_vram_target(target, idle.free_bytes / GIB) if values.get("autoVram") else target


def ram_limit_gib(host: Host) -> float:
    values = section(host, SECTION).values
    return seed_budget(values.get("maxRamGB"), recommended_ram_gib(ram_reading(host)), PLACEHOLDER_RAM_GIB)


def host_budget(host: Host, *, backend_ids: tuple[str, ...] = ()) -> Budget:
    """What plans of this host may use. A target typed where no GPU was seen counts as one device of that size.

    `backend_ids` are a backend's own names of the devices in use, in their order.
    """
    target, ram = target_vram_gib(host), ram_limit_gib(host)
    return machine_budget(idle_devices(host), readings(host), target, ram, backend_ids=backend_ids)


def memory_settings(host: Host) -> MemorySettings:
    """The memory section, with what the machine has beside it."""
    row = section(host, SECTION)
    devices = eligible_devices(host)
    return MemorySettings(
        target_vram_gib=row.values.get("targetVramGB"),
        auto_vram=bool(row.values.get("autoVram")),
        overhead_gib=row.values.get("vramOverheadGB", DEFAULT_OVERHEAD_GIB),
        max_ram_gib=row.values.get("maxRamGB"),
        ttl_seconds=row.values.get("ttlSec", DEFAULT_TTL_SECONDS),
        version=row.version,
        changed_by=str(row.changed_by or ""),
        changed_at=row.changed_at if row.version else None,
        values=row.values,
        capacity_gib=to_gib(devices.total_bytes, 1),
        free_gib=to_gib(devices.free_bytes, 1),
        ram_total_gib=to_gib(host.ram_total_bytes, 1),
        ram_available_gib=to_gib(host.ram_available_bytes, 1),
        target_in_use_gib=target_vram_gib(host),
        ram_in_use_gib=ram_limit_gib(host),
        device_count=len(devices),
    )


def watch_settings_of(host: Host) -> WatchSettings:
    """The watching section."""
    row = section(host, watch_settings.SECTION)
    return WatchSettings(
        seconds=watch_settings.seconds_of(row.values),
        is_set=bool(row.values),
        version=row.version,
        changed_by=str(row.changed_by or ""),
        changed_at=row.changed_at if row.version else None,
    )


def device_settings_of(host: Host) -> DeviceSettings:
    """The device section."""
    row = section(host, device_settings.SECTION)
    return DeviceSettings(
        values=row.values,
        policy=device_settings.policy_of(row.values),
        version=row.version,
        changed_by=str(row.changed_by or ""),
        changed_at=row.changed_at if row.version else None,
    )
