"""Reading the kernel's /sys: what is missing, unreadable, too long or no number is unknown, never an error."""

from __future__ import annotations

import re
from pathlib import Path

DRM = Path("/sys/class/drm")
DRI = Path("/dev/dri")
_CARD = re.compile(r"^card([0-9]{1,4})$")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_MOST_CHARACTERS = 1 << 16
"""Of one file; the kernel's are one page."""
_LIKELY_CELSIUS = (0, 200)


def cards(drm: Path) -> list[tuple[int, Path]]:
    """Number and folder of each card, without connectors (`card0-DP-1`)."""
    return sorted((int(match[1]), path) for path in entries(drm) if (match := _CARD.match(path.name)))


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, by name."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def text(path: Path) -> str:
    """The content without surrounding blanks and NUL, "" where there is none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST_CHARACTERS).replace("\x00", "").strip()
    except (OSError, ValueError):
        return ""


def number(path: Path) -> int | None:
    """A whole number of at most 18 digits."""
    content = text(path)
    return int(content) if _NUMBER.fullmatch(content) else None


def size(path: Path) -> int:
    """A number of bytes, 0 where it is unknown or negative."""
    return max(0, number(path) or 0)


def percent(path: Path) -> float | None:
    value = number(path)
    return float(value) if value is not None and 0 <= value <= 100 else None


def driver(device: Path) -> str:
    """The kernel driver of a device (`amdgpu`)."""
    return _uevent(device, "DRIVER")


def pci_address(device: Path) -> str:
    return _uevent(device, "PCI_SLOT_NAME")


def has_node(card: Path, dri: Path) -> bool:
    """Whether programs can open the device here: a container may see /sys of a card that it was not given."""
    names = {f"{kind.name}" for kind in entries(card / "device" / "drm")} | {card.name}
    return any((dri / name).exists() for name in names)


def temperature_celsius(device: Path, names: tuple[str, ...] = ("temp1_input",)) -> float | None:
    """The first sensor of these that says something likely."""
    value = _sensor(device, names)
    low, high = _LIKELY_CELSIUS
    return value / 1000 if value is not None and low <= value / 1000 <= high else None


def power_watts(device: Path) -> float | None:
    value = _sensor(device, ("power1_average", "power1_input"))
    return value / 1_000_000 if value is not None and value >= 0 else None


def _sensor(device: Path, names: tuple[str, ...]) -> int | None:
    for monitor in entries(device / "hwmon"):
        for name in names:
            if (value := number(monitor / name)) is not None:
                return value
    return None


def _uevent(device: Path, key: str) -> str:
    lines = text(device / "uevent").splitlines()
    return next((line.partition("=")[2].strip() for line in lines if line.startswith(f"{key}=")), "")
