"""NVIDIA devices through the driver's own library (NVML), and through `nvidia-smi` where that can't be loaded."""

from __future__ import annotations

import subprocess
from typing import Any

from gpus_app.core.probes.nvidia_smi import QUERY, reading_of_row, snapshots
from gpus_app.core.readings import DeviceReading, ProbeResult

VENDOR = "nvidia"
_TIMEOUT_SECONDS = 8


def read() -> ProbeResult:
    """All NVIDIA devices, or why there are none."""
    try:
        import pynvml
    except ImportError:
        return _from_command("the NVML binding is not installed")
    try:
        pynvml.nvmlInit()
    except Exception as error:  # the binding raises its own classes; any of them means that NVML can't be used
        return _from_command(str(error))
    try:
        devices = tuple(_device(pynvml, index) for index in range(int(pynvml.nvmlDeviceGetCount())))
        return ProbeResult(VENDOR, devices, "" if devices else "the NVIDIA driver is loaded but sees no device")
    except Exception as error:  # as above: a device that falls off the bus between two calls
        return ProbeResult(VENDOR, note=f"NVML failed: {error}", failed=True)
    finally:
        pynvml.nvmlShutdown()


def _device(nvml: Any, index: int) -> DeviceReading:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return DeviceReading(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        total_bytes=int(memory.total),
        used_bytes=int(memory.total) - int(memory.free),
        integrated=None,
        vendor=VENDOR,
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        pci_address=_text(nvml.nvmlDeviceGetPciInfo(handle).busId),
        temperature_celsius=_optional(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        utilisation_percent=_optional(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        power_watts=_optional(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
    )


def _optional(ask: Any) -> float | None:
    try:
        return float(ask())
    except Exception:  # a figure that this card does not report
        return None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _from_command(why: str) -> ProbeResult:
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except FileNotFoundError:
        return ProbeResult(VENDOR, note=f"no NVIDIA driver ({why})")
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProbeResult(VENDOR, note=f"nvidia-smi failed: {error}", failed=True)
    if answer.returncode != 0:
        return ProbeResult(
            VENDOR, note=f"nvidia-smi failed: {answer.stdout.strip() or answer.stderr.strip()}", failed=True
        )
    rows = [row for snapshot in snapshots(answer.stdout.splitlines()) for row in snapshot]
    return ProbeResult(VENDOR, tuple(reading_of_row(row) for row in rows), "" if rows else "nvidia-smi lists no device")
