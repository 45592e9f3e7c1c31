"""Every vendor's probe, in one pass. A new vendor is one module and one line in `PROBES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gpus_app.core.probes import amd, apple, intel, memory, nvidia
from gpus_app.core.readings import DeviceReading, MachineReading, ProbeResult

PROBES: tuple[Callable[[], ProbeResult], ...] = (nvidia.read, amd.read, intel.read, apple.read)


def read_machine(probes: Iterable[Callable[[], ProbeResult]] = PROBES) -> MachineReading:
    """All that answer are merged, with the memory; what a probe says about an absence is kept as a note."""
    results = [_ask(probe) for probe in probes]
    return MachineReading(_merged(results), memory.read(), _notes(results), _failed(results))


def read_devices(
    probes: Iterable[Callable[[], ProbeResult]] = PROBES,
) -> tuple[tuple[DeviceReading, ...], tuple[str, ...]]:
    """The devices of all vendors, and the vendors of which not every device could be read."""
    results = [_ask(probe) for probe in probes]
    return _merged(results), _failed(results)


def _merged(results: list[ProbeResult]) -> tuple[DeviceReading, ...]:
    """Indices of several vendors would collide, so with more than one vendor they count on over all devices."""
    answering = [result for result in results if result.devices]
    devices = [device for result in answering for device in result.devices]
    if len(answering) > 1:
        devices = [replace(device, index=position) for position, device in enumerate(devices)]
    return tuple(devices)


def _failed(results: list[ProbeResult]) -> tuple[str, ...]:
    return tuple(result.vendor for result in results if result.failed)


def _notes(results: list[ProbeResult]) -> tuple[str, ...]:
    return tuple(f"{result.vendor}: {result.note}" for result in results if result.note)


def _ask(probe: Callable[[], ProbeResult]) -> ProbeResult:
    try:
        return probe()
    except Exception as error:  # a vendor's library may fail in any way, and must not hide the other vendors
        return ProbeResult(probe.__module__.rpartition(".")[2], note=f"probe failed: {error}", failed=True)
