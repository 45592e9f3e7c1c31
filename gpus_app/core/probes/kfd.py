"""AMD's kernel topology (KFD): the only thing that tells an APU from a card (sizing.md 17)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gpus_app.core.probes import sysfs

NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_PCI = re.compile(r"^(?:[0-9a-fA-F]{4,8}:)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$")
_LAST_DEVICE = 0x1F
"""A bus has 32 devices."""
_UNIT_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def is_apu(properties: Mapping[str, int]) -> bool | None:
    """True for a GPU without memory of its own, False for a card, None for a CPU or an unknown node."""
    if properties.get("simd_count", 0) <= 0 or "local_mem_size" not in properties:
        return None
    return properties["local_mem_size"] == 0


def location_of(pci_address: str) -> int | None:
    """The `location_id` of a PCI address: bus, device and function in one number."""
    match = _PCI.match(pci_address.strip())
    if match is None:
        return None
    bus, device, function = int(match.group(1), 16), int(match.group(2), 16), int(match.group(3))
    return bus << 8 | device << 3 | function if device <= _LAST_DEVICE else None


def node_at(nodes: Mapping[int, Mapping[str, int]], pci_address: str) -> Mapping[str, int]:
    """The properties of the device at an address, nothing where KFD has none there. Old kernels tell no domain."""
    location = location_of(pci_address)
    if not location:
        return {}
    domain = _domain_of(pci_address)
    found = (node for node in nodes.values() if node.get("location_id") == location)
    return next((node for node in found if node.get("domain", domain) == domain), {})


def _domain_of(pci_address: str) -> int:
    """Of an address that has a location."""
    domain, colon, _ = pci_address.strip().rpartition(":")[0].partition(":")
    return int(domain, 16) if colon else 0


def read_nodes(folder: Path = NODES) -> dict[int, dict[str, int]]:
    """The properties of each node, numbers only, and its `gpu_id`."""
    nodes: dict[int, dict[str, int]] = {}
    for entry in sysfs.entries(folder):
        if entry.name.isdecimal():
            properties = parse_properties(sysfs.text(entry / "properties"))
            nodes[int(entry.name)] = properties | {"gpu_id": sysfs.size(entry / "gpu_id")}
    return nodes


def process_bytes(folder: Path) -> dict[int, dict[int, int]]:
    """What each compute process holds on each device, by KFD's own account: id of the device -> process -> bytes.

    It covers the memory that an APU borrows.
    """
    held: dict[int, dict[int, int]] = {}
    for process in sysfs.entries(folder):
        for path in sysfs.entries(process) if process.name.isdecimal() else []:
            device = path.name.removeprefix("vram_")
            if device != path.name and device.isdecimal() and (size := sysfs.size(path)):
                held.setdefault(int(device), {})[int(process.name)] = size
    return held


def parse_properties(text: str) -> dict[str, int]:
    """`name value` lines; lines of another shape are left out."""
    words = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal() and len(pair[1]) < 20}


def integrated_shared_used(gtt_used: int, process_used: int, integrated: bool) -> int:
    """Shared memory in use; the processes' own account sees more than GTT does on an integrated device."""
    return max(gtt_used, process_used) if integrated else gtt_used


def fdinfo_bytes(value: str) -> int | None:
    """A memory value of DRM fdinfo (`229184 KiB`), None for anything else."""
    words = value.split()
    if not 1 <= len(words) <= 2 or not words[0].isdecimal() or len(words[0]) > 18:
        return None
    unit = words[1] if len(words) == 2 else ""
    return int(words[0]) * _UNIT_BYTES[unit] if unit in _UNIT_BYTES else None
