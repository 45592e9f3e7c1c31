"""The memory section of a host's settings: what may be typed, and what holds where nothing was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpus_app.core.units import round_half_up
from quartermaster_site.errors import Refused

SECTION = "memory"
DEFAULT_OVERHEAD_GIB = 0.5
DEFAULT_TTL_SECONDS = 600
MOST_GIB = 1 << 20
MOST_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class NumberRule:
    """What a numeric key of the section accepts, in words for its message."""

    key: str
    label: str
    most: float
    zero_allowed: bool
    whole: bool = False

    def check(self, value: Any) -> float | int:
        """The value as stored; raises ValueError with the message."""
        low = "0 or more" if self.zero_allowed else "more than 0"
        wanted = f"{self.label} must be a number, {low} and at most {self.most:,.0f}."
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(wanted)
        if value < 0 or (value == 0 and not self.zero_allowed) or value > self.most:
            raise ValueError(wanted)
        if self.whole and value != int(value):
            raise ValueError(f"{self.label} must be a whole number.")
        return int(value) if self.whole else float(value)


NUMBERS: tuple[NumberRule, ...] = (
    NumberRule("targetVramGB", "VRAM target", MOST_GIB, zero_allowed=False),
    NumberRule("vramOverheadGB", "Headroom", MOST_GIB, zero_allowed=True),
    NumberRule("maxRamGB", "RAM limit", MOST_GIB, zero_allowed=False),
    NumberRule("ttlSec", "Idle time-out", MOST_SECONDS, zero_allowed=True, whole=True),
)
SWITCHES = ("autoVram",)
DEFAULTS = {"vramOverheadGB": DEFAULT_OVERHEAD_GIB, "ttlSec": DEFAULT_TTL_SECONDS, "autoVram": False}


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The section as a page shows it. None means automatic; sizes in GiB."""

    target_vram_gib: float | None
    auto_vram: bool
    overhead_gib: float
    max_ram_gib: float | None
    ttl_seconds: int
    version: int
    changed_by: str
    changed_at: datetime | None
    values: Mapping[str, Any]
    """What is stored: set keys only."""
    capacity_gib: float
    """VRAM of all eligible devices together, 0 where none was seen."""
    free_gib: float
    ram_total_gib: float
    ram_available_gib: float
    target_in_use_gib: float
    """What planning uses now, typed or proposed; 0 is a CPU-only plan."""
    ram_in_use_gib: float
    device_count: int

    @property
    def warnings(self) -> dict[str, str]:
        """Field -> what is odd about its value, although it is kept. Figures are compared as they are shown."""
        found = {}
        if self.capacity_gib and round_half_up(self.target_vram_gib or 0.0, 1) > self.capacity_gib:
            found["targetVramGB"] = f"The devices seen have {self.capacity_gib:g} GiB together."
        if self.ram_total_gib and round_half_up(self.max_ram_gib or 0.0, 1) > self.ram_total_gib:
            found["maxRamGB"] = f"This machine has {self.ram_total_gib:g} GiB."
        return found


def cleaned(values: Mapping[str, Any]) -> dict[str, Any]:
    """The set keys, checked. A value equal to the default is stored as absent; Refused names every bad field."""
    kept: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for key in values:
        if key not in SWITCHES and key not in {rule.key for rule in NUMBERS}:
            problems[key] = "There is no such setting."
    for rule in NUMBERS:
        if values.get(rule.key) is not None:
            try:
                kept[rule.key] = rule.check(values[rule.key])
            except ValueError as error:
                problems[rule.key] = str(error)
    for key in SWITCHES:
        if values.get(key) is not None:
            kept[key] = bool(values[key])
    if problems:
        raise Refused("Some values cannot be used.", fields=problems)
    return {key: value for key, value in kept.items() if DEFAULTS.get(key) != value}
