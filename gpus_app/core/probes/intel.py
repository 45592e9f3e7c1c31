"""Intel devices from sysfs: the xe and i915 drivers show local memory only for discrete cards."""

from __future__ import annotations

import re
from pathlib import Path

from gpus_app.core.readings import DeviceReading, ProbeResult

VENDOR = "intel"
DRM = Path("/sys/class/drm")
_CARD = re.compile(r"^card(\d+)$")
_DRIVERS = ("DRIVER=xe", "DRIVER=i915")


def read(drm: Path = DRM) -> ProbeResult:
    """Intel devices with memory of their own, or why there are none.

    An integrated Intel GPU has no local memory, so it is named in the note and reported as no device: what it may
    borrow is system RAM, which the RAM cap already covers.
    """
    devices = []
    integrated = 0
    for number, device in _cards(drm):
        total = _first_number(device, ("lmem_total_bytes", "tile0/vram0/total", "mem_info_vram_total"))
        if total <= 0:
            integrated += 1
            continue
        devices.append(
            DeviceReading(
                index=number,
                name=f"Intel GPU [8086:{_text(device / 'device').strip().lower().removeprefix('0x')}]",
                total_bytes=total,
                used_bytes=_used(device, total),
                integrated=False,
                vendor=VENDOR,
                pci_address=_slot_name(device),
            )
        )
    if devices:
        return ProbeResult(VENDOR, tuple(devices))
    note = "an integrated Intel GPU without memory of its own" if integrated else "no Intel device"
    return ProbeResult(VENDOR, note=note)


def _cards(drm: Path) -> list[tuple[int, Path]]:
    try:
        entries = sorted(drm.iterdir())
    except OSError:
        return []
    cards = ((int(match.group(1)), path / "device") for path in entries if (match := _CARD.match(path.name)))
    return [(number, device) for number, device in cards if any(mark in _text(device / "uevent") for mark in _DRIVERS)]


def _used(device: Path, total: int) -> int:
    available = _first_number(device, ("lmem_avail_bytes",))
    if available > 0:
        return max(0, total - available)
    return _first_number(device, ("tile0/vram0/used", "mem_info_vram_used"))


def _slot_name(device: Path) -> str:
    lines = _text(device / "uevent").splitlines()
    return next((line.partition("=")[2].strip() for line in lines if line.startswith("PCI_SLOT_NAME=")), "")


def _first_number(device: Path, names: tuple[str, ...]) -> int:
    for name in names:
        text = _text(device / name).strip()
        if text.isdigit():
            return int(text)
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
