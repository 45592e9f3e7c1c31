"""What registered executables said of themselves, as planning asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpus_app.core.budget import Budget
from gpus_app.models import Backend, Host
from gpus_app.selectors import host_budget, idle_devices, unused_devices
from models_app import convert
from models_app.core.launch.audio_devices import AudioDevice
from models_app.core.launch.program_text import audio_devices, matched_ids


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """One executable. What it was not asked, or could not say, is None or empty."""

    kind: str = ""
    flags: frozenset[str] | None = None
    budget: Budget | None = None
    """The host's budget with the names that this executable gives the devices; None where launches name none."""
    audio_devices: tuple[AudioDevice, ...] = ()
    joined_lora_scale: bool = False
    """It takes the scale of an adapter behind its file, as one word."""


UNASKED = BackendFacts()
Known = Mapping[str, BackendFacts]
"""By the id of a backend."""


def known_backends(host: Host) -> Known:
    """All executables of a host that were asked."""
    return {row.slug: _facts(host, row) for row in host.backends.all() if row.probe}


def _facts(host: Host, row: Backend) -> BackendFacts:
    devices = convert.backend_devices(row) or ()
    members, others = idle_devices(host).devices, unused_devices(host)
    # A single device needs no name where there is no other; the spec's `--device` is for sets.
    ids = matched_ids(members, devices, others) if len(members) > 1 or others else ()
    budget = host_budget(host, backend_ids=ids) if ids else None
    joined = row.probe.get("joined_lora_scale") is True
    return BackendFacts(row.kind, convert.backend_flags(row), budget, audio_devices(devices), joined)
