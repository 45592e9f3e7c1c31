"""A host at this moment: the last sample of its devices, memory and disks in words, and how old that is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gpus_app.models import Host, Telemetry
from gpus_app.telemetry import memory_of
from models_app.models import Router
from models_app.pages.host_page import STALE_AFTER
from models_app.pages.live_history import values_of
from models_app.pages.router_page import STATES
from models_app.router.state import HOLDING
from quartermaster_site.drawings import MiniBar, mini_bar
from quartermaster_site.figures import UNKNOWN, age, ago, gib

LATE_AFTER = timedelta(seconds=20)
"""Samples come every five seconds."""
LEAST_FREE_SHARE = 0.05
"""Of a disk; below it somebody should look (web.md 5.9)."""

FULL = "nearly full"


@dataclass(frozen=True, slots=True)
class Verdict:
    tone: str
    headline: str
    details: str


@dataclass(frozen=True, slots=True)
class DeviceLine:
    name: str
    integrated: bool
    bar: MiniBar | None
    used: str
    total: str
    free: str
    ours: str
    foreign: str
    note: str
    """Why nobody can tell whose memory it is, or who the largest others are."""
    busy: str
    temperature: str
    power: str


@dataclass(frozen=True, slots=True)
class DiskLine:
    path: str
    free: str
    total: str
    tone: str
    word: str


@dataclass(frozen=True, slots=True)
class LoadedLine:
    id: str
    tone: str
    word: str
    shape: str
    since: datetime


@dataclass(frozen=True, slots=True)
class LiveView:
    verdict: Verdict
    stale: bool
    has_sample: bool
    devices: tuple[DeviceLine, ...]
    unknown: str
    """Why nobody can tell whose memory it is, where that is so of every device."""
    notes: tuple[str, ...]
    failed: bool
    ram: str
    cpu: str
    disks: tuple[DiskLine, ...]
    point: str
    """The newest values of the drawings, as JSON; empty where the sample is too old to be a moment of now."""


def live_view(host: Host, telemetry: Telemetry | None, now: datetime) -> LiveView:
    """The last sample, if there is one, with a verdict that never calls old figures new."""
    received = telemetry.received_at if telemetry else None
    sample = telemetry.sample if telemetry and received else {}
    is_late = received is None or now - received > LATE_AFTER
    ram = sample.get("ram")
    reasons = {device["ours_note"] for device in sample.get("devices", ())}
    unknown = reasons.pop() if len(reasons) == 1 else ""
    return LiveView(
        verdict=_verdict(host, received, now),
        stale=received is not None and (now - received > STALE_AFTER or host.state == "offline"),
        has_sample=bool(sample),
        devices=tuple(_device(device, said=unknown) for device in sample.get("devices", ())),
        unknown=unknown,
        notes=tuple(sample.get("notes", ())),
        failed=bool(sample.get("failed")),
        ram=f"{gib(_ram_used(ram))} / {gib(ram['total_bytes'])}" if ram else UNKNOWN,
        cpu=_figure(sample.get("cpu_percent"), " %"),
        disks=tuple(_disk(disk) for disk in sample.get("disks", ())),
        point=""
        if is_late or received is None
        else json.dumps({"t": received.timestamp(), "values": values_of(sample)}),
    )


def loaded_lines(router: Router | None) -> list[LoadedLine]:
    """What the router holds in memory."""
    listed = router.listed if router else []
    return [
        LoadedLine(item["id"], *STATES[item["state"]], datetime.fromisoformat(item["since"]))
        for item in listed
        if item["state"] in HOLDING
    ]


def disk_notes(host: Host) -> list[str]:
    """Warnings about its disks, as sentences, from its last sample."""
    telemetry: Telemetry | None = getattr(host, "telemetry", None)
    lines = [_disk(disk) for disk in telemetry.sample.get("disks", ())] if telemetry else []
    return [
        f"The disk below {line.path} is nearly full: {line.free} of {line.total} GiB are free."
        for line in lines
        if line.word == FULL
    ]


def _verdict(host: Host, received: datetime | None, now: datetime) -> Verdict:
    last = f"The last sample came {ago(received, now)}." if received else "It never sent a sample."
    if heard := host.cut_off_heard_at:
        return Verdict("warn", f"Its machine was cut off; it was last heard {ago(heard, now)}", last)
    if host.last_seen_at is None:
        return Verdict("", "No worker has answered yet", "Samples come with the worker of this host.")
    if host.state == "offline":
        since = f"{host.last_seen_at:%Y-%m-%d %H:%M} UTC"
        headline = f"Host offline since {since} ({age((now - host.last_seen_at).total_seconds())})"
        return Verdict("bad", headline, f"{last}{' What follows is from then.' if received else ''}")
    if host.why_jobs_wait:
        return Verdict("warn", f"{host.why_jobs_wait}: no samples are asked for", last)
    if received is None:
        return Verdict("", "No sample yet", "The worker is asked for samples with its heartbeat, every few seconds.")
    if now - received > LATE_AFTER:
        why = "One is due every five seconds: a driver may hang, or messages wait in a queue."
        if host.state == "late":
            why = "One is due every five seconds, and its worker is silent too: it was stopped, or cannot be reached."
        return Verdict("warn", f"Last sample {ago(received, now)}", why)
    return Verdict("ok", "Live", f"Last sample {ago(received, now)}.")


def _device(device: Mapping[str, Any], *, said: str) -> DeviceLine:
    """`said`: what stands above all devices."""
    used, total = memory_of(device)
    used = min(used, total)
    ours = device["ours_bytes"]
    foreign = None if ours is None else max(0, used - device["reserved_bytes"] - ours)
    others = ", ".join(f"{name} {gib(size)}" for name, size in device["others"])
    others = f"other use: {others}" if others else ""
    return DeviceLine(
        name=f"GPU {device['index']} · {device['name']}",
        integrated=bool(device["integrated"]),
        bar=mini_bar(used, total, 0, loaded=True),
        used=gib(used) if total else UNKNOWN,
        total=gib(total) if total else UNKNOWN,
        free=gib(total - used) if total else UNKNOWN,
        ours=gib(ours),
        foreign=gib(foreign),
        note="" if said else device["ours_note"] or others,
        busy=_figure(device["utilisation_percent"], " %"),
        temperature=_figure(device["temperature_celsius"], " °C"),
        power=_figure(device["power_watts"], " W"),
    )


def _disk(disk: Mapping[str, Any]) -> DiskLine:
    total, free = disk["total_bytes"], disk["free_bytes"]
    if disk["problem"] or not total:
        return DiskLine(disk["path"], UNKNOWN, UNKNOWN, "warn", disk["problem"] or "no size told")
    full = free < LEAST_FREE_SHARE * total
    return DiskLine(disk["path"], gib(free, 1), gib(total, 1), "warn" if full else "ok", FULL if full else "ok")


def _ram_used(ram: Mapping[str, Any]) -> int:
    return max(0, int(ram["total_bytes"] - ram["available_bytes"]))


def _figure(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:.0f}{unit}"


def seen_lines(lines: Sequence[LoadedLine], served: Callable[[str], bool]) -> tuple[list[LoadedLine], int]:
    """Those that a person may see, and how many others there are. `served`: whether an id may be shown."""
    seen = [line for line in lines if served(line.id)]
    return seen, len(lines) - len(seen)
