"""Bytes of the caches, exactly (compute-buffer.md 2)."""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.catalog import Launch
from models_app.core.planning.geometry import Geometry
from models_app.core.planning.kv_types import element_bytes
from models_app.core.planning.model_facts import ModelTable

STATE_ELEMENT_BYTES = 4


class ContextBytes(NamedTuple):
    """The caches of a range of blocks."""

    k: int = 0
    v: int = 0
    r: int = 0
    s: int = 0

    @property
    def total(self) -> int:
        return self.k + self.v + self.r + self.s


def context_bytes(table: ModelTable, launch: Launch, geo: Geometry, start: int, end: int) -> ContextBytes:
    """Caches of the blocks from `start` up to but not `end`."""
    sums = table.sums
    k_full, k_sliding = sums.k_full[end] - sums.k_full[start], sums.k_sliding[end] - sums.k_sliding[start]
    if launch.flash_attn:
        v_full, v_sliding = sums.v_full[end] - sums.v_full[start], sums.v_sliding[end] - sums.v_sliding[start]
    else:
        v_full = (sums.owns_full[end] - sums.owns_full[start]) * table.v_width_largest
        v_sliding = (sums.owns_sliding[end] - sums.owns_sliding[start]) * table.v_width_largest
    k_elements = geo.streams * (k_full * geo.cells + k_sliding * geo.window_cells)
    v_elements = geo.streams * (v_full * geo.cells + v_sliding * geo.window_cells)
    copies = geo.slots * (1 + (launch.rollback_snapshots if table.rolls_back else 0)) * STATE_ELEMENT_BYTES
    return ContextBytes(
        k=cache_bytes(k_elements, launch.type_k),
        v=cache_bytes(v_elements, launch.type_v),
        r=copies * (sums.state_r[end] - sums.state_r[start]),
        s=copies * (sums.state_s[end] - sums.state_s[start]),
    )


def cache_bytes(elements: int, kv_type: str) -> int:
    """Bytes of so many cached elements; every size per element is a multiple of 1/32 byte."""
    return elements * int(element_bytes(kv_type) * 32) // 32
