"""What a host worker does about its devices: plain JSON in and out, no database, no Django."""

from __future__ import annotations

import os
import platform
from typing import Any

from gpus_app import heartbeat, sampling
from gpus_app.core.probes.machine import read_machine
from gpus_app.core.readings import MachineReading
from gpus_app.sampling import device_json
from quartermaster_site.jobs.host_tasks import host_task
from quartermaster_site.jobs.reporting import Reporter

__all__ = ["heartbeat", "probe_devices", "sampling"]

FAMILIES = {"Windows": "windows", "Darwin": "darwin"}


@host_task("gpus_app.host_tasks.probe_devices")
def probe_devices(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """All devices and the memory of this machine, read once."""
    report.progress("Reading devices", 0)
    machine = read_machine()
    for note in machine.notes:
        report.log(note)
    return machine_facts(machine)


def machine_facts(machine: MachineReading) -> dict[str, Any]:
    """What the control side stores of one reading."""
    memory = machine.memory
    return {
        "os_family": FAMILIES.get(platform.system(), "linux"),
        "cpu_count": os.cpu_count() or 0,
        "ram_total_bytes": memory.total_bytes if memory else 0,
        "ram_available_bytes": memory.free_bytes if memory else 0,
        "devices": [device_json(reading) for reading in machine.devices],
        "notes": list(machine.notes),
        "failed": list(machine.failed),
    }
