"""The CSV of `rocm-smi`: columns are found by their label, because they differ between releases (sizing.md 17)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from types import MappingProxyType

from gpus_app.core.probes import kfd
from gpus_app.core.readings import DeviceReading

NO_NODE = -1
COMMAND = (
    "rocm-smi",
    *("-i", "-P", "-t", "-f", "-u"),
    "--showmemuse",
    *("--showmeminfo", "vram", "gtt"),
    "--showproductname",
    "--csv",
)


def parse_table(text: str, nodes: Mapping[int, Mapping[str, int]] = MappingProxyType({})) -> tuple[DeviceReading, ...]:
    """One reading per card. Rows of one card fill each other's gaps and are never added up.

    `nodes` are those of KFD, which says what is an APU.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    start = next((number for number, line in enumerate(lines) if line.lower().startswith("device,")), None)
    if start is None:
        return ()
    cards: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(lines[start:]):
        merged = cards.setdefault(str(row.get("device")), {})
        for label, value in row.items():
            if isinstance(value, str) and value.strip() and not merged.get(label):
                merged[label] = value.strip()
    readings = (card_reading(position, row, nodes) for position, row in enumerate(cards.values()))
    return tuple(reading for reading in readings if reading.total_bytes > 0)


def card_reading(
    position: int, row: dict[str, str], nodes: Mapping[int, Mapping[str, int]] = MappingProxyType({})
) -> DeviceReading:
    """The figures of one card."""
    node = _field(row, "node", "id")
    return DeviceReading(
        index=position,
        name=_name(row),
        total_bytes=_bytes(row, "vram", used=False),
        used_bytes=_bytes(row, "vram", used=True),
        shared_total_bytes=_bytes(row, "gtt", used=False),
        shared_used_bytes=_bytes(row, "gtt", used=True),
        integrated=kfd.is_apu(nodes.get(int(node) if node.isdecimal() else NO_NODE, {})),
        vendor="amd",
    )


def _name(row: dict[str, str]) -> str:
    series = _field(row, "card", "series")
    parts = [text for text in (series, _field(row, "card", "model")) if text]
    version = _field(row, "gfx", "version")
    name = " ".join(parts) or _field(row, "device", "name") or "AMD GPU"
    return f"{name} ({version})" if version and series else name


def _bytes(row: dict[str, str], pool: str, *, used: bool) -> int:
    """`VRAM Total Memory (B)` or `VRAM Total Used Memory (B)`, however a release spells them."""
    for label, value in row.items():
        words = label.lower()
        if pool in words and "total" in words and ("used" in words) == used and value.isdigit():
            return int(value)
    return 0


def _field(row: dict[str, str], *marks: str) -> str:
    return next((value for label, value in row.items() if all(mark in label.lower() for mark in marks)), "")
