"""Intel devices from sysfs: the xe and i915 drivers show local memory only for discrete cards."""

from __future__ import annotations

from pathlib import Path

from gpus_app.core.probes import sysfs
from gpus_app.core.readings import DeviceReading, ProbeResult

VENDOR = "intel"
_DRIVERS = ("xe", "i915")
_TOTALS = ("lmem_total_bytes", "device/lmem_total_bytes", "device/tile0/vram0/total", "device/mem_info_vram_total")
_AVAILABLE = ("lmem_avail_bytes", "device/lmem_avail_bytes")
_USED = ("device/tile0/vram0/used", "device/mem_info_vram_used")
_IDLE = (
    "device/tile0/gt0/gtidle/idle_residency_ms",  # xe
    "gt/gt0/rc6_residency_ms",  # i915
    "power/rc6_residency_ms",  # i915 before Linux 5.19
)
_INTEGRATED_SLOT = "0000:00:02.0"
"""Where every integrated GPU of Intel sits."""


def read(drm: Path = sysfs.DRM, dri: Path = sysfs.DRI) -> ProbeResult:
    """Intel devices with memory of their own, or why there are none.

    An integrated Intel GPU has no local memory, so it is named in the note and reported as no device: what it may
    borrow is system RAM, which the RAM cap already covers.
    """
    devices, notes = [], []
    for number, card in sysfs.cards(drm):
        if sysfs.driver(card / "device") not in _DRIVERS:
            continue
        if not (total := _first(card, _TOTALS)):
            notes.append(_without_memory(card))
        elif not sysfs.has_node(card, dri):
            notes.append(f"{card.name} cannot be used here: nothing in {dri} belongs to it")
        else:
            devices.append(_card(number, card, total))
    if not devices and not notes:
        notes = ["no Intel device"]
    return ProbeResult(VENDOR, tuple(devices), "; ".join(dict.fromkeys(notes)))


def _card(number: int, card: Path, total: int) -> DeviceReading:
    device = card / "device"
    return DeviceReading(
        index=number,
        name=f"Intel GPU [8086:{sysfs.text(device / 'device').lower().removeprefix('0x')[:8]}]",
        total_bytes=total,
        used_bytes=_used(card, total),
        integrated=False,
        vendor=VENDOR,
        pci_address=sysfs.pci_address(device),
        temperature_celsius=sysfs.temperature_celsius(device, ("temp2_input", "temp1_input")),
        power_watts=sysfs.power_watts(device),
        idle_milliseconds=_idle_milliseconds(card),
    )


def _without_memory(card: Path) -> str:
    if sysfs.pci_address(card / "device") in ("", _INTEGRATED_SLOT):
        return "an integrated Intel GPU without memory of its own"
    return f"the driver of {card.name} does not tell its memory: set the VRAM target by hand"


def _used(card: Path, total: int) -> int:
    if any((card / name).exists() for name in _AVAILABLE):
        return max(0, total - _first(card, _AVAILABLE))
    return _first(card, _USED)


def _idle_milliseconds(card: Path) -> int | None:
    """How long the render and compute engines have slept so far; None where the driver does not count it, or not now
    because the whole card is switched off.
    """
    if sysfs.text(card / "device" / "power" / "runtime_status") == "suspended":
        return None
    return next((value for name in _IDLE if (value := sysfs.number(card / name)) is not None), None)


def _first(card: Path, names: tuple[str, ...]) -> int:
    return next((size for name in names if (size := sysfs.size(card / name))), 0)
