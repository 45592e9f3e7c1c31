"""Units of the models side: the shared byte rules, re-exported under the name that the core uses."""

from __future__ import annotations

from gpus_app.core.units import GIB, KIB, MIB, floor_gib, from_gib, pad, round_half_up, to_gib

__all__ = ["GIB", "KIB", "MIB", "floor_gib", "from_gib", "pad", "round_half_up", "to_gib"]
