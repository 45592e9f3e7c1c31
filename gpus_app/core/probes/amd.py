"""AMD devices from sysfs, with KFD's word on what is an APU; `rocm-smi` where sysfs shows nothing (sizing.md 17)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gpus_app.core.probes import kfd
from gpus_app.core.probes.rocm_smi import COMMAND, parse_table
from gpus_app.core.readings import DeviceReading, ProbeResult

VENDOR = "amd"
DRM = Path("/sys/class/drm")
KFD_PROCESSES = Path("/sys/class/kfd/kfd/proc")
_CARD = re.compile(r"^card(\d+)$")
_TIMEOUT_SECONDS = 8


def read(drm: Path = DRM, nodes: Path = kfd.NODES, processes: Path = KFD_PROCESSES) -> ProbeResult:
    """All devices of the amdgpu driver, or why there are none."""
    devices = read_sysfs(drm, nodes, processes)
    if devices:
        return ProbeResult(VENDOR, devices)
    return _from_command()


def read_sysfs(drm: Path, nodes: Path, processes: Path) -> tuple[DeviceReading, ...]:
    """One reading per card of the amdgpu driver."""
    apus = {
        properties["location_id"]: apu
        for properties in kfd.read_nodes(nodes).values()
        if "location_id" in properties and (apu := kfd.is_apu(properties)) is not None
    }
    process_bytes = _process_bytes(processes)
    cards = sorted((int(match.group(1)), path) for path in _list(drm) if (match := _CARD.match(path.name)))
    readings = (_card(number, path / "device", apus, process_bytes) for number, path in cards)
    return tuple(reading for reading in readings if reading is not None)


def memory_utilisation_percent(
    total_bytes: int, used_bytes: int, shared_total_bytes: int, shared_used_bytes: int, integrated: bool
) -> float:
    """Over both pools where the device is integrated, else over its own memory."""
    if integrated:
        total_bytes, used_bytes = total_bytes + shared_total_bytes, used_bytes + shared_used_bytes
    return 100 * used_bytes / total_bytes if total_bytes > 0 else 0.0


def _card(number: int, device: Path, apus: dict[int, bool], process_bytes: int) -> DeviceReading | None:
    if "DRIVER=amdgpu" not in _text(device / "uevent").splitlines():
        return None
    pci_address = _slot_name(device)
    apu = apus.get(location) if (location := kfd.location_of(pci_address)) is not None else None
    gtt_used = _number(device / "mem_info_gtt_used")
    return DeviceReading(
        index=number,
        name=_text(device / "product_name").strip() or _pci_name(device),
        total_bytes=_number(device / "mem_info_vram_total"),
        used_bytes=_number(device / "mem_info_vram_used"),
        shared_total_bytes=_number(device / "mem_info_gtt_total"),
        shared_used_bytes=kfd.integrated_shared_used(gtt_used, process_bytes, bool(apu)),
        integrated=apu,
        vendor=VENDOR,
        pci_address=pci_address,
        temperature_celsius=_sensor(device, "temp1_input", 1000),
        utilisation_percent=float(_number(device / "gpu_busy_percent")),
        power_watts=_sensor(device, "power1_average", 1_000_000),
    )


def _slot_name(device: Path) -> str:
    for line in _text(device / "uevent").splitlines():
        if line.startswith("PCI_SLOT_NAME="):
            return line.partition("=")[2].strip()
    return ""


def _pci_name(device: Path) -> str:
    vendor, model = (_text(device / name).strip().lower().removeprefix("0x") for name in ("vendor", "device"))
    return f"amdgpu [{vendor}:{model}]"


def _process_bytes(folder: Path) -> int:
    """What all compute processes hold, by KFD's own account; it covers the memory an APU borrows."""
    return sum(_number(path) for process in _list(folder) for path in _list(process) if path.name.startswith("vram_"))


def _sensor(device: Path, name: str, scale: int) -> float | None:
    for monitor in _list(device / "hwmon"):
        if text := _text(monitor / name).strip():
            return int(text) / scale if text.isdigit() else None
    return None


def _list(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else 0


def _from_command() -> ProbeResult:
    try:
        answer = subprocess.run(COMMAND, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except FileNotFoundError:
        return ProbeResult(VENDOR, note="no AMD device (no amdgpu in sysfs, no rocm-smi)")
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProbeResult(VENDOR, note=f"rocm-smi failed: {error}", failed=True)
    if answer.returncode != 0:
        return ProbeResult(VENDOR, note=f"rocm-smi failed: {answer.stderr.strip()}", failed=True)
    devices = parse_table(answer.stdout)
    return ProbeResult(VENDOR, devices, "" if devices else "rocm-smi lists no device")
