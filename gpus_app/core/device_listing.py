"""What a backend calls the devices (sizing.md 15): parsing `--list-devices`, and finding our devices in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpus_app.core.units import GIB, MIB

SIZE_TOLERANCE_BYTES = GIB * 3 // 2
"""Drivers and backends disagree about the total by reserved memory."""

_SIZED_LINE = re.compile(r"^\s*([A-Za-z]+\d+):\s*(.*?)\s*\((\d+)\s*MiB\b[^()]*\)\s*$")
_NAMED_LINE = re.compile(r"^\s*([A-Za-z]+\d+):\s*(\S.*?)\s*$")
_TABBED_LINE = re.compile(r"^\s*([^\s:()]*\d)\t+\s*(.*?)\s*$")
_NOISE_WORDS = frozenset({"tm", "r", "nvidia", "amd", "intel", "corporation", "geforce", "radeon", "arc"})
_MODEL_WORDS = frozenset({"ti", "super", "xt", "xtx", "gre", "max", "pro", "laptop", "mobile", "ada", "d"})
"""Words that make another model of the same number: a 4070 is no 4070 Ti."""
_WORDS = re.compile(r"[a-z0-9]+")

_VISIBLE_VARIABLE = {
    "cuda": "CUDA_VISIBLE_DEVICES",
    "vulkan": "GGML_VK_VISIBLE_DEVICES",
    "vk": "GGML_VK_VISIBLE_DEVICES",
    "rocm": "HIP_VISIBLE_DEVICES",
    "hip": "HIP_VISIBLE_DEVICES",
}
_BACKEND_ID = re.compile(r"^([A-Za-z]+)(\d+)$")


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """One line of a listing; `total_bytes` 0 where the line gives no size."""

    id: str
    name: str
    total_bytes: int = 0


def parse_listing(text: str) -> tuple[ListedDevice, ...]:
    """The devices of a `--list-devices` text. Banners, CPU rows and repeated ids are left out."""
    found: dict[str, ListedDevice] = {}
    for line in text.splitlines():
        device = _parse_line(line)
        if device and not device.id.lower().startswith("cpu"):
            found.setdefault(device.id, device)
    return tuple(found.values())


def match_devices(devices: Sequence[tuple[str, int]], listed: Sequence[ListedDevice]) -> tuple[str, ...]:
    """The backend's ids of our devices, given as (name, total bytes), in our order; () unless all are found.

    Equal names are settled before contained ones, among equals the nearest size wins, and each listed device is used
    once.
    """
    candidates = sorted(
        (closeness, difference, ours, theirs)
        for ours, (name, total_bytes) in enumerate(devices)
        for theirs, device in enumerate(listed)
        if (closeness := _closeness(name, device.name)) is not None
        and (difference := _difference(total_bytes, device.total_bytes)) <= SIZE_TOLERANCE_BYTES
    )
    found: dict[int, int] = {}
    for _closeness_found, _difference_found, ours, theirs in candidates:
        if ours not in found and theirs not in found.values():
            found[ours] = theirs
    if len(found) < len(devices):
        return ()
    return tuple(listed[found[position]].id for position in range(len(devices)))


def visible_device(backend_id: str) -> tuple[str, str] | None:
    """The environment variable and value that pin a single-device engine to this device."""
    match = _BACKEND_ID.match(backend_id)
    variable = _VISIBLE_VARIABLE.get(match.group(1).lower()) if match else None
    return (variable, match.group(2)) if match and variable else None


def number_of(backend_id: str) -> int:
    """Which of its runtime's devices an id names: 1 for `CUDA1`; 0 for an id without a number."""
    match = _BACKEND_ID.match(backend_id)
    return int(match.group(2)) if match else 0


def _parse_line(line: str) -> ListedDevice | None:
    if match := _SIZED_LINE.match(line):
        return ListedDevice(match.group(1), match.group(2), int(match.group(3)) * MIB)
    if match := _TABBED_LINE.match(line):
        return ListedDevice(match.group(1), match.group(2))
    if match := _NAMED_LINE.match(line):
        return ListedDevice(match.group(1), match.group(2))
    return None


def _closeness(ours: str, theirs: str) -> int | None:
    """0 for the same model, 1 where one name only says less than the other, None for different models."""
    first, second = _words(ours), _words(theirs)
    if not first or not second:
        return None
    if first == second or _squeezed(ours) == _squeezed(theirs):
        return 0
    if (first < second or second < first) and not (first ^ second) & _MODEL_WORDS:
        return 1
    return None


def _difference(ours_bytes: int, theirs_bytes: int) -> int:
    return abs(ours_bytes - theirs_bytes) if theirs_bytes else 0


def _words(name: str) -> frozenset[str]:
    return frozenset(word for word in _WORDS.findall(name.lower()) if word not in _NOISE_WORDS)


def _squeezed(name: str) -> str:
    return "".join(word for word in _WORDS.findall(name.lower()) if word not in _NOISE_WORDS)
