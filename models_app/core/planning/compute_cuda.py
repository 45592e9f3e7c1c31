"""What a CUDA device adds to the plain compute buffer (compute-buffer.md 6).

It keeps an f16 copy of one block's quantised cache while attending, and it copies weights that lie in host memory in
for every batch of 32 tokens or more. The first is in the working sets of `graph_sizes`, the second is here. Not
measured on a card, and for partial offload an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from models_app.core.planning.graph_sizes import masks_of, working_bytes
from models_app.core.planning.launched import Launched, Stage, block_cache_bytes


def streamed_compute(run: Launched, stages: Sequence[Stage], compute: list[int], host: int) -> tuple[list[int], int]:
    """Compute buffers with host weights streamed through the first device, from those without."""
    if not stages:
        return compute, host
    if run.host_blocks or run.host_has_output:
        first = max(compute[0], _stream_blocks(run, stages[0]))
    elif run.cpu_moe_blocks:
        first = max(compute[0], _stream_experts(run, stages[0]))
    else:
        return compute, host
    sizes = run.sizes
    extra = sizes.per_block_inputs + sizes.activations if sizes.per_block_inputs else 0
    idle_host = 4 * sizes.activations + masks_of(run.table, sizes, 0, run.table.trunk) + extra
    return [first, *compute[1:]], min(host, idle_host)


def _stream_experts(run: Launched, stage: Stage) -> int:
    """Experts of one block at a time pass through the device (6.2)."""
    table, sizes = run.table, run.sizes
    moved = table.layers[stage.start : min(run.cpu_moe_blocks, stage.end)]
    up = max((layer.largest_up_bytes for layer in moved), default=0)
    down = max((layer.largest_down_bytes for layer in moved), default=0)
    masks = masks_of(table, sizes, stage.start, stage.end)
    work = working_bytes(table, sizes, stage.start, stage.end, run.cpu_moe_blocks)
    rows = sizes.expert_rows
    work = max(work, 2 * rows + up, rows + down + sizes.routed)
    if table.caches[0].state_r or table.caches[0].state_s:
        work = max(work, rows + 2 * max(up, down))
    if stage.has_output and sizes.logits > masks + 2 * sizes.activations:
        work = max(work, sizes.logits)
    return 4 * sizes.activations + masks + sizes.per_block_inputs + work


def _stream_blocks(run: Launched, stage: Stage) -> int:
    """Whole blocks pass through the device, with their caches: an upper bound (6.3)."""
    table, sizes, blocks = run.table, run.sizes, run.host_blocks
    if not blocks:
        return 0
    largest = max(layer.largest_tensor_bytes for layer in table.layers[:blocks])
    first = table.caches[0]
    if table.is_moe and (first.sliding or not first.attends):
        largest *= 2
    masks = masks_of(table, sizes, 0, max(blocks, stage.end))
    work = max(working_bytes(table, sizes, 0, blocks), working_bytes(table, sizes, stage.start, stage.end))
    return 4 * sizes.activations + masks + sizes.per_block_inputs + work + largest + _largest_cache(run, blocks)


def _largest_cache(run: Launched, blocks: int) -> int:
    """K and V of the one host block that has most of them."""
    return max((block_cache_bytes(run, cache) for cache in set(run.table.caches[:blocks])), default=0)
