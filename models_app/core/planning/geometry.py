"""From a launch to cells, streams and tokens: the numbers that every part of the projection starts from.

Source: compute-buffer.md 1 and 2, sizing.md 18.1.
"""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.catalog import Launch
from models_app.core.units import pad

CELL_MULTIPLE = 256
DEFAULT_CTX_TOKENS = 4096


class Geometry(NamedTuple):
    """Sizes of the caches and of one micro-batch, in cells and tokens."""

    ctx_tokens: int
    cells: int
    """Cells of one stream of a full cache."""
    window_cells: int
    """Cells of one stream of a sliding-window cache."""
    streams: int
    tokens: int
    """Tokens of a micro-batch as the graph is reserved, a multiple of the slots."""
    token_bytes: int
    """One float for every token of a micro-batch."""
    slots: int


def geometry(launch: Launch, window_tokens: int, trained_tokens: int = 0) -> Geometry:
    """Cells and tokens of a launch of a model with this sliding window (0 = none).

    A window of `-c 0` means the trained one.
    """
    ctx_tokens = pad(launch.ctx_tokens or trained_tokens or DEFAULT_CTX_TOKENS, CELL_MULTIPLE)
    slots = max(1, launch.slots)
    streams = 1 if launch.kv_unified else slots
    cells = ctx_tokens if launch.kv_unified else pad(ctx_tokens // slots, CELL_MULTIPLE)
    ubatch = min(launch.ubatch, launch.batch, ctx_tokens)
    window_cells = cells
    if not launch.swa_full:
        in_window = window_tokens * (slots if launch.kv_unified else 1) + ubatch
        window_cells = pad(min(cells, in_window), CELL_MULTIPLE)
    tokens = pad(ubatch, slots)
    return Geometry(ctx_tokens, cells, window_cells, streams, tokens, 4 * tokens, slots)
