"""The device section of a host's settings: which devices plans may use, and what of each is left to others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpus_app.core.gpu_set import FIRST, LAST, NEVER, DevicePolicy
from quartermaster_site.errors import Refused

SECTION = "gpu"
RESERVE = "deviceReserveGB"
"""Index of a device -> GiB that plans leave to others."""
PREFERENCE = "devicePreference"
"""Index of a device -> when plans use it, where that is not the usual."""
PREFERENCES = (FIRST, LAST, NEVER)
DEFAULTS: Mapping[str, Any] = {
    "multiGpu": True,
    "minGpuVramGB": 3.0,
    "sharedMemory": "auto",
    "poolIntegratedGpu": False,
}
SHARED_MODES = ("auto", "on", "off")
MOST_GIB = 4096
MOST_DEVICES = 64


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """The section as a page shows it."""

    values: Mapping[str, Any]
    """What is stored: set keys only."""
    policy: DevicePolicy
    version: int
    changed_by: str
    changed_at: datetime | None


def policy_of(values: Mapping[str, Any]) -> DevicePolicy:
    """The policy that stored values mean."""
    own = {**DEFAULTS, **values}
    return DevicePolicy(
        min_vram_gib=own["minGpuVramGB"],
        shared_memory=own["sharedMemory"],
        pool_integrated=own["poolIntegratedGpu"],
        multi_gpu=own["multiGpu"],
        reserve_gib={int(index): size for index, size in own.get(RESERVE, {}).items()},
        preference={int(index): word for index, word in own.get(PREFERENCE, {}).items()},
    )


def cleaned(values: Mapping[str, Any]) -> dict[str, Any]:
    """The set keys, checked. A value equal to the default is stored as absent; Refused names every bad field."""
    problems: dict[str, str] = {}
    kept: dict[str, Any] = {}
    for key, value in values.items():
        if value is None:
            continue
        try:
            kept[key] = _checked(key, value)
        except ValueError as error:
            problems[key] = str(error)
    if problems:
        raise Refused("Some values cannot be used.", fields=problems)
    return {key: value for key, value in kept.items() if value != DEFAULTS.get(key, {})}


def _checked(key: str, value: Any) -> Any:
    if key in ("multiGpu", "poolIntegratedGpu"):
        return bool(value)
    if key == "sharedMemory":
        if value not in SHARED_MODES:
            raise ValueError(f"One of {', '.join(SHARED_MODES)}.")
        return value
    if key == "minGpuVramGB":
        return _size(value)
    if key == RESERVE and isinstance(value, Mapping) and len(value) <= MOST_DEVICES:
        sizes = {str(int(index)): _size(size) for index, size in value.items()}
        return {index: size for index, size in sorted(sizes.items()) if size}
    if key == PREFERENCE and isinstance(value, Mapping) and len(value) <= MOST_DEVICES:
        words = {str(int(index)): word for index, word in value.items() if word}
        if any(word not in PREFERENCES for word in words.values()):
            raise ValueError(f"One of {', '.join(PREFERENCES)}.")
        return dict(sorted(words.items()))
    raise ValueError("There is no such setting.")


def _size(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 <= value <= MOST_GIB:
        raise ValueError(f"A size from 0 to {MOST_GIB:,} GiB.")
    return float(value)
