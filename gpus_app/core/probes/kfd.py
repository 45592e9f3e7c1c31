"""AMD's kernel topology (KFD): the only thing that tells an APU from a card (sizing.md 17)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_PCI = re.compile(r"^(?:[0-9a-fA-F]{4,8}:)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$")
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
    return bus << 8 | device << 3 | function


def read_nodes(folder: Path = NODES) -> dict[int, dict[str, int]]:
    """The properties of each node, numbers only."""
    nodes: dict[int, dict[str, int]] = {}
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return {}
    for entry in entries:
        if entry.name.isdigit():
            nodes[int(entry.name)] = parse_properties(_read_text(entry / "properties"))
    return nodes


def parse_properties(text: str) -> dict[str, int]:
    """`name value` lines; lines of another shape are left out."""
    words = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}


def integrated_shared_used(gtt_used: int, process_used: int, integrated: bool) -> int:
    """Shared memory in use; the processes' own account sees more than GTT does on an integrated device."""
    return max(gtt_used, process_used) if integrated else gtt_used


def fdinfo_bytes(value: str) -> int | None:
    """A memory value of DRM fdinfo (`229184 KiB`), None for anything else."""
    words = value.split()
    if not 1 <= len(words) <= 2 or not words[0].isdigit():
        return None
    unit = words[1] if len(words) == 2 else ""
    return int(words[0]) * _UNIT_BYTES[unit] if unit in _UNIT_BYTES else None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
