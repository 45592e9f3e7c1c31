"""Every vendor's probe, in one pass. A new vendor is one module and one line in `PROBES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gpus_app.core.probes import amd, intel, memory, nvidia
from gpus_app.core.readings import DeviceReading, MachineReading, ProbeResult

PROBES: tuple[Callable[[], ProbeResult], ...] = (nvidia.read, amd.read, intel.read)


def read_machine(probes: Iterable[Callable[[], ProbeResult]] = PROBES) -> MachineReading:
    """All that answer are merged; what a probe says about an absence is kept as a note.

    Indices of several vendors would collide, so with more than one vendor they count on over all devices.
    """
    results = [_ask(probe) for probe in probes]
    answering = [result for result in results if result.devices]
    devices: list[DeviceReading] = [device for result in answering for device in result.devices]
    if len(answering) > 1:
        devices = [replace(device, index=position) for position, device in enumerate(devices)]
    return MachineReading(
        devices=tuple(devices),
        memory=memory.read(),
        notes=tuple(f"{result.vendor}: {result.note}" for result in results if result.note),
    )


def _ask(probe: Callable[[], ProbeResult]) -> ProbeResult:
    try:
        return probe()
    except Exception as error:  # a vendor's library may fail in any way, and must not hide the other vendors
        return ProbeResult(probe.__module__.rpartition(".")[2], note=f"probe failed: {error}", failed=True)
