"""Which device an audio.cpp server is told to use (classes.md 11.3, 11.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FLAVOURS = {
    "cuda": "cuda",
    "vulkan": "vulkan",
    "metal": "metal",
    "metal-x64": "metal",
    "cpu": "cpu",
    "cpu-portable": "cpu",
    "rocm": "hip",
}
"""Variant of a registered build -> value of its `--backend`."""
_LISTED_AS = {"hip": "rocm"}
_LINE = re.compile(r'\s*([A-Za-z]+):(\d{1,4})\s+"(.*)"\s+\[([A-Za-z]+)\]\s*\Z')
GPU = "GPU"


@dataclass(frozen=True, slots=True)
class AudioDevice:
    """One line of the server's own listing."""

    backend: str
    index: int
    name: str
    kind: str


def flavour_of(variant: str) -> str:
    """The engine flavour of a build, "" for one that nobody knows: then the server takes its own default."""
    return FLAVOURS.get(variant.strip().lower(), "")


def parse_devices(lines: Iterable[str]) -> list[AudioDevice]:
    """The devices of a `--list-devices` output; banner, count and footer are passed over."""
    found = (_LINE.match(line) for line in lines)
    return [AudioDevice(match[1], int(match[2]), match[3], match[4]) for match in found if match]


def pick_device(devices: Sequence[AudioDevice], flavour: str) -> int | None:
    """The first real GPU of a flavour where there is a choice; None leaves the choice to the server."""
    if flavour in ("", "cpu"):
        return None
    wanted = _LISTED_AS.get(flavour.lower(), flavour.lower())
    rows = [device for device in devices if _LISTED_AS.get(device.backend.lower(), device.backend.lower()) == wanted]
    if len(rows) < 2:
        return None
    return next((device.index for device in rows if device.kind.upper() == GPU), None)


def device_argument(devices: Sequence[AudioDevice], flavour: str, pinned: int | None) -> tuple[str, ...]:
    """`--device N`, or nothing. A pin decides without a look at the devices; a negative one switches the flag off."""
    index = pick_device(devices, flavour) if pinned is None else pinned
    return () if index is None or index < 0 else ("--device", str(index))
