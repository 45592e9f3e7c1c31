"""AMD devices from sysfs, with KFD's word on what is an APU; `rocm-smi` where sysfs shows nothing (sizing.md 17)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from gpus_app.core.probes import kfd, sysfs
from gpus_app.core.probes.rocm_smi import COMMAND, parse_table
from gpus_app.core.readings import DeviceReading, ProbeResult, ProcessReading

VENDOR = "amd"
KFD_PROCESSES = Path("/sys/class/kfd/kfd/proc")
_TIMEOUT_SECONDS = 8


def read(
    drm: Path = sysfs.DRM, nodes: Path = kfd.NODES, processes: Path = KFD_PROCESSES, dri: Path = sysfs.DRI
) -> ProbeResult:
    """All devices of the amdgpu driver, or why there are none."""
    cards = [(number, card) for number, card in sysfs.cards(drm) if sysfs.driver(card / "device") == "amdgpu"]
    usable = [(number, card) for number, card in cards if sysfs.has_node(card, dri)]
    if usable:
        return ProbeResult(VENDOR, _readings(usable, kfd.read_nodes(nodes), processes))
    if cards:
        names = ", ".join(card.name for _, card in cards)
        return ProbeResult(VENDOR, note=f"{names} cannot be used here: nothing in {dri} belongs to it")
    return _from_command(kfd.read_nodes(nodes))


def memory_utilisation_percent(
    total_bytes: int, used_bytes: int, shared_total_bytes: int, shared_used_bytes: int, integrated: bool
) -> float:
    """Over both pools where the device is integrated, else over its own memory."""
    if integrated:
        total_bytes, used_bytes = total_bytes + shared_total_bytes, used_bytes + shared_used_bytes
    return 100 * used_bytes / total_bytes if total_bytes > 0 else 0.0


def _readings(
    cards: list[tuple[int, Path]], nodes: Mapping[int, Mapping[str, int]], processes: Path
) -> tuple[DeviceReading, ...]:
    holding = kfd.process_bytes(processes)
    alone = len(cards) == 1
    readings = []
    for number, card in cards:
        node = kfd.node_at(nodes, sysfs.pci_address(card / "device"))
        readings.append(_card(number, card / "device", node, holding, alone=alone))
    return tuple(readings)


def _card(
    number: int,
    device: Path,
    node: Mapping[str, int],
    holding: Mapping[int, Mapping[int, int]],
    *,
    alone: bool,
) -> DeviceReading:
    """`holding`: KFD's id of a device -> process -> bytes; with one card all of it is of this card."""
    apu = kfd.is_apu(node)
    mine = holding.get(node.get("gpu_id", 0), {}) if not alone else _sums(holding)
    gtt_used = sysfs.size(device / "mem_info_gtt_used")
    return DeviceReading(
        index=number,
        name=sysfs.text(device / "product_name")[:100] or _pci_name(device),
        total_bytes=sysfs.size(device / "mem_info_vram_total"),
        used_bytes=sysfs.size(device / "mem_info_vram_used"),
        shared_total_bytes=sysfs.size(device / "mem_info_gtt_total"),
        shared_used_bytes=kfd.integrated_shared_used(gtt_used, sum(mine.values()), bool(apu)),
        integrated=apu,
        vendor=VENDOR,
        uuid=sysfs.text(device / "unique_id")[:32],
        pci_address=sysfs.pci_address(device),
        temperature_celsius=sysfs.temperature_celsius(device),
        utilisation_percent=sysfs.percent(device / "gpu_busy_percent"),
        power_watts=sysfs.power_watts(device),
        # KFD knows compute processes alone: what draws or computes through Vulkan is in nobody's list.
        processes=tuple(ProcessReading(pid, size) for pid, size in sorted(mine.items())) if mine else None,
    )


def _run(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)


def _sums(holding: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for processes in holding.values():
        for pid, size in processes.items():
            sums[pid] = sums.get(pid, 0) + size
    return sums


def _pci_name(device: Path) -> str:
    vendor, model = (sysfs.text(device / name).lower().removeprefix("0x") for name in ("vendor", "device"))
    return f"amdgpu [{vendor[:8]}:{model[:8]}]"


def _from_command(nodes: Mapping[int, Mapping[str, int]]) -> ProbeResult:
    """By the tool of the driver; one that knows nothing of GTT is asked again without."""
    try:
        answer = _run(COMMAND)
        if answer.returncode != 0:
            answer = _run(tuple(word for word in COMMAND if word != "gtt"))
    except FileNotFoundError:
        return ProbeResult(VENDOR, note="no AMD device (no amdgpu in sysfs, no rocm-smi)")
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProbeResult(VENDOR, note=f"rocm-smi failed: {error}", failed=True)
    if answer.returncode != 0:
        return ProbeResult(VENDOR, note=f"rocm-smi failed: {answer.stderr.strip()}", failed=True)
    devices = parse_table(answer.stdout, nodes)
    return ProbeResult(VENDOR, devices, "" if devices else "rocm-smi lists no device")
