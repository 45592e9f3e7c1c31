"""Classic cost of the KV cache: a line in the window length (sizing.md 3 to 5).

The reference's arithmetic, kept for parity and as the fallback for headers that lack what the exact engine needs.
Figures are GiB, rounded nowhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from models_app.core.catalog import Header
from models_app.core.planning.checkpoints import resolve_checkpoints
from models_app.core.planning.kv_types import LAUNCHABLE_TYPES, element_bytes
from models_app.core.readers.weights import MAX_BLOCKS
from models_app.core.units import GIB

WINDOW_STEP = 4096
DEFAULT_PATTERN = 6
DEFAULT_MIN_CTX = 32768


@dataclass(frozen=True, slots=True)
class KvLine:
    """`slope_gib * tokens + const_gib`, with the layers behind it."""

    slope_gib: float = 0.0
    const_gib: float = 0.0
    global_layers: int = 0
    local_layers: int = 0
    recurrent_layers: int = 0

    def reserve_gib(self, ctx_tokens: int) -> float:
        return self.slope_gib * ctx_tokens + self.const_gib

    def max_ctx(self, budget_gib: float) -> int:
        """The longest window that fits into so much memory, 0 for none."""
        if budget_gib - self.const_gib <= 0 or self.slope_gib <= 0:
            return 0
        return math.floor((budget_gib - self.const_gib) / self.slope_gib)

    def times(self, slots: int) -> KvLine:
        """The cost of so many slots, each with a window of its own."""
        return KvLine(
            self.slope_gib * slots,
            self.const_gib * slots,
            self.global_layers,
            self.local_layers,
            self.recurrent_layers,
        )

    def steeper(self, gib_per_token: float) -> KvLine:
        """With a further cost per token, such as a draft context."""
        return KvLine(
            self.slope_gib + gib_per_token, self.const_gib, self.global_layers, self.local_layers, self.recurrent_layers
        )


def round_ctx(ctx_tokens: int) -> int:
    """Down to a multiple of 4096, but never below 4096."""
    return max(WINDOW_STEP, ctx_tokens // WINDOW_STEP * WINDOW_STEP)


def is_recurrent(header: Header) -> bool:
    """Recurrent in the classic sense: the header names an interval of full attention, and nothing else counts."""
    return header.full_attn_interval > 0


def kv_line(header: Header, type_k: str, type_v: str) -> KvLine | None:
    """The line of a model, None where its header lacks the dimensions or claims an absurd number of layers."""
    if (
        header.block_count > MAX_BLOCKS
        or min(header.block_count, header.head_count_kv, header.key_length, header.value_length) <= 0
    ):
        return None
    bytes_k, bytes_v = element_bytes(type_k), element_bytes(type_v)
    row_bytes = header.key_length * bytes_k + header.value_length * bytes_v
    window_row_bytes = (header.key_length_swa or header.key_length) * bytes_k + (
        header.value_length_swa or header.value_length
    ) * bytes_v
    pattern = header.sliding_window_pattern if header.sliding_window_pattern > 0 else DEFAULT_PATTERN
    slope = const = 0.0
    full = local = recurrent = 0
    for layer in range(header.block_count):
        heads = _heads(header, layer)
        if header.full_attn_interval > 0 and (layer + 1) % header.full_attn_interval != 0:
            recurrent += 1
        elif heads <= 0:
            continue
        elif header.sliding_window <= 0 or (layer + 1) % pattern == 0:
            full += 1
            slope += heads * row_bytes
        else:
            local += 1
            const += heads * window_row_bytes * header.sliding_window
    const += recurrent * _state_bytes(header)
    return KvLine(slope / GIB, const / GIB, full, local, recurrent)


def default_kv_type(header: Header, target_gib: float, overhead_gib: float, min_ctx: int, wanted: str) -> str:
    """The type where nothing is pinned: f16 as long as the least window of a dense model fits at f16.

    `overhead_gib` is the headroom and the drafter, without the compute buffer.
    """
    if wanted in LAUNCHABLE_TYPES:
        return wanted
    line = kv_line(header, "f16", "f16")
    if line is None:
        return "f16"
    least = min_ctx if min_ctx > 0 else DEFAULT_MIN_CTX
    if header.context_length > 0:
        least = min(least, header.context_length)
    budget_gib = target_gib - header.file_size_gib - overhead_gib
    return "f16" if line.max_ctx(budget_gib) >= least else "q8_0"


def checkpoint_reserve_gib(
    line: KvLine, recurrent: bool, count: int | None, ctx_ceiling: int, spacing: int | None = None
) -> float:
    """What the reference sets aside for context checkpoints (today's llama.cpp keeps them in RAM)."""
    if line.slope_gib <= 0 and line.const_gib <= 0:
        return 0.0
    chosen = resolve_checkpoints(recurrent, line.const_gib > 0, count, spacing)
    number = chosen.count
    if ctx_ceiling > 0:
        number = min(number, ctx_ceiling // chosen.spacing)
    return max(0, number) * (line.const_gib + line.slope_gib * chosen.spacing)


def _heads(header: Header, layer: int) -> int:
    if layer < len(header.head_count_kv_arr):
        return header.head_count_kv_arr[layer]
    return header.head_count_kv


def _state_bytes(header: Header) -> float:
    if header.ssm_inner_size <= 0:
        return 0.0
    inner = header.ssm_inner_size
    return (inner * header.ssm_state_size + inner * max(0, header.ssm_conv_kernel - 1)) * 4.0
