"""NVIDIA devices through the driver's own library (NVML), and through `nvidia-smi` where that can't be loaded."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from gpus_app.core.probes.nvidia_smi import (
    DEVICE_AND_PROCESS_QUERY,
    QUERY,
    processes_by_device,
    reading_of_row,
    snapshots,
)
from gpus_app.core.readings import DeviceReading, ProbeResult, ProcessReading

VENDOR = "nvidia"
REMEDIES = {
    "LibRmVersionMismatch": "restart this machine, or load the kernel module of the installed driver",
    "NoPermission": "the user of the worker may not open /dev/nvidiactl",
    "GpuIsLost": "the driver lost it; restarting this machine brings it back",
}
"""What helps, by the last part of the name of the binding's error class."""
_TIMEOUT_SECONDS = 8
_MOST_PROCESSES = 1000
T = TypeVar("T")


def read() -> ProbeResult:
    """All NVIDIA devices, or why there are none. A device that does not answer leaves a note and hides no other."""
    try:
        import pynvml
    except ImportError:
        return _from_command("the NVML binding is not installed")
    try:
        pynvml.nvmlInit()
    except Exception as error:  # the binding raises its own classes; any of them means that NVML can't be used
        return _without_library(pynvml, error)
    try:
        return _devices(pynvml)
    except Exception as error:  # as above
        return ProbeResult(VENDOR, note=f"NVML failed: {_said(error)}", failed=True)
    finally:
        with suppress(Exception):
            pynvml.nvmlShutdown()


@contextmanager
def kept_open() -> Iterator[None]:
    """Inside, `read` finds the library initialised: without that each call may wake the driver, for a second."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # `read` says what is wrong
        yield
        return
    try:
        yield
    finally:
        with suppress(Exception):
            pynvml.nvmlShutdown()


def _devices(nvml: Any) -> ProbeResult:
    found: list[DeviceReading] = []
    notes: list[str] = []
    count = int(nvml.nvmlDeviceGetCount())
    for index in range(count):
        try:
            found += _parts(nvml, index)
        except Exception as error:  # a card that fell off the bus between two calls, say
            notes.append(f"GPU {index} does not answer: {_said(error)}")
    failed = bool(notes)
    notes += [f"{reading.name} does not report its memory" for reading in found if reading.total_bytes <= 0]
    if not count:
        notes.append("the NVIDIA driver is loaded but sees no device")
    return ProbeResult(VENDOR, tuple(found), "; ".join(notes), failed)


def _parts(nvml: Any, index: int) -> list[DeviceReading]:
    """The device, or with MIG its instances: the whole card is then nothing that a program could use."""
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    card = _device(nvml, handle, index)
    if not _optional(lambda: nvml.nvmlDeviceGetMigMode(handle)[0]):
        return [card]
    count = _optional(lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0
    instances = (_optional(partial(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, n)) for n in range(int(count)))
    return [_instance(nvml, card, found, slot) for slot, found in enumerate(instances) if found is not None]


def _instance(nvml: Any, card: DeviceReading, handle: Any, slot: int) -> DeviceReading:
    """A MIG instance. Its number is none that a whole card has; a card has at most seven instances."""
    reading = _device(nvml, handle, 64 + 8 * card.index + slot)
    return DeviceReading(
        index=reading.index,
        name=f"{card.name} (instance {slot})" if reading.name == card.name else reading.name,
        total_bytes=reading.total_bytes,
        used_bytes=reading.used_bytes,
        vendor=VENDOR,
        uuid=reading.uuid,
        pci_address=card.pci_address,
        temperature_celsius=card.temperature_celsius,
        reserved_bytes=reading.reserved_bytes,
        processes=reading.processes,
    )


def _device(nvml: Any, handle: Any, index: int) -> DeviceReading:
    total, used, reserved = _memory(nvml, handle)
    return DeviceReading(
        index=index,
        name=_text(_optional(lambda: nvml.nvmlDeviceGetName(handle)) or "NVIDIA GPU"),
        total_bytes=total,
        used_bytes=used,
        integrated=None,
        vendor=VENDOR,
        uuid=_text(_optional(lambda: nvml.nvmlDeviceGetUUID(handle)) or ""),
        pci_address=_text(_optional(lambda: nvml.nvmlDeviceGetPciInfo(handle).busId) or ""),
        temperature_celsius=_figure(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        utilisation_percent=_figure(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        power_watts=_figure(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        reserved_bytes=reserved,
        processes=_processes(nvml, handle),
    )


def _memory(nvml: Any, handle: Any) -> tuple[int, int, int]:
    """Total, not free, and reserved by the driver. All 0 for a device without memory of its own (GB10, Jetson)."""
    try:
        memory = _memory_call(nvml, handle)
    except nvml.NVMLError_NotSupported:
        return 0, 0, 0
    total = int(memory.total)
    return total, max(0, total - int(memory.free)), int(getattr(memory, "reserved", 0))


def _memory_call(nvml: Any, handle: Any) -> Any:
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError_FunctionNotFound:  # a driver before version 510
        return nvml.nvmlDeviceGetMemoryInfo(handle)


def _processes(nvml: Any, handle: Any) -> tuple[ProcessReading, ...] | None:
    """Those that compute and those that draw; None where the driver does not say what each of them holds."""
    try:
        listed = [
            *nvml.nvmlDeviceGetComputeRunningProcesses(handle),
            *nvml.nvmlDeviceGetGraphicsRunningProcesses(handle),
        ]
    except Exception:  # not supported, or not permitted
        return None
    sizes: dict[int, int] = {}
    for process in listed[:_MOST_PROCESSES]:
        if process.usedGpuMemory is None:
            return None
        # A process that does both is in both lists with all that it holds.
        sizes[int(process.pid)] = max(int(process.usedGpuMemory), sizes.get(int(process.pid), 0))
    return tuple(ProcessReading(pid, size) for pid, size in sorted(sizes.items()))


def _optional(ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except Exception:  # a figure that this card does not report
        return None


def _figure(ask: Callable[[], Any]) -> float | None:
    value = _optional(ask)
    return float(value) if value is not None else None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _said(error: Exception) -> str:
    remedy = REMEDIES.get(type(error).__name__.rpartition("_")[2], "")
    said = str(error).rstrip(".")
    return f"{said} ({remedy})" if remedy else said


def _without_library(nvml: Any, error: Exception) -> ProbeResult:
    """The library is not there, no driver is loaded, or the driver is there and cannot be used."""
    if isinstance(error, nvml.NVMLError_LibraryNotFound):
        return _from_command(str(error))
    if isinstance(error, nvml.NVMLError_DriverNotLoaded):
        return ProbeResult(VENDOR, note=f"no NVIDIA driver ({error})")
    return ProbeResult(VENDOR, note=f"the NVIDIA driver cannot be asked: {_said(error)}", failed=True)


def _from_command(why: str) -> ProbeResult:
    try:
        answer = _run(f"--query-gpu={QUERY}")
    except FileNotFoundError:
        return ProbeResult(VENDOR, note=f"no NVIDIA driver ({why})")
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProbeResult(VENDOR, note=f"nvidia-smi failed: {error}", failed=True)
    if answer.returncode != 0:
        return ProbeResult(
            VENDOR, note=f"nvidia-smi failed: {answer.stdout.strip() or answer.stderr.strip()}", failed=True
        )
    rows = [row for snapshot in snapshots(answer.stdout.splitlines()) for row in snapshot]
    found = tuple(reading_of_row(row) for row in rows)
    return ProbeResult(VENDOR, _with_processes(found), "" if rows else "nvidia-smi lists no device")


def _with_processes(devices: tuple[DeviceReading, ...]) -> tuple[DeviceReading, ...]:
    """Those that compute, where the command tells them."""
    try:
        answer = _run(f"--query-compute-apps={DEVICE_AND_PROCESS_QUERY}") if devices else None
    except (OSError, subprocess.TimeoutExpired):
        answer = None
    if answer is None or answer.returncode != 0:
        return devices
    held = processes_by_device(answer.stdout.splitlines())
    return tuple(replace(device, processes=held.get(device.uuid, ())) for device in devices)


def _run(query: str) -> subprocess.CompletedProcess[str]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
