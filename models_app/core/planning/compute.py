"""Compute buffers on a device that keeps all of its work to itself, and on the host (compute-buffer.md 4).

The formulas follow where the allocator's peak lies. They hold for devices such as RPC; what CUDA adds is in
`compute_cuda`.
"""

from __future__ import annotations

from models_app.core.planning.compute_alone import input_rows, logits_peak, whole_device
from models_app.core.planning.compute_behind import attending_ahead, device_behind, is_first_mamba
from models_app.core.planning.compute_experts import experts_on_host, with_experts_away
from models_app.core.planning.compute_pipeline import pipelined_compute
from models_app.core.planning.context import cache_bytes
from models_app.core.planning.graph_sizes import masks_of, working_bytes
from models_app.core.planning.launched import PIPELINE_COPIES, Launched, Stage

HOST_INPUT_BYTES = 36
FIRST_INPUT_BYTES = 28
FURTHER_INPUT_BYTES = 20
"""Token ids, positions and cache indices, per token, where they are needed."""


def device_compute(run: Launched, stage: Stage) -> int:
    """Compute buffer of one device, in bytes; 0 when it holds nothing."""
    if stage.start == stage.end and not stage.has_output:
        return 0
    table, sizes = run.table, run.sizes
    masks = masks_of(table, sizes, stage.start, stage.end)
    work = working_bytes(table, sizes, stage.start, stage.end, run.cpu_moe_blocks)
    logits = sizes.logits if stage.has_output else 0
    inputs = sizes.token * (FURTHER_INPUT_BYTES if stage.start else FIRST_INPUT_BYTES)
    if stage.has_output:
        inputs += sizes.output_ids
    borrowed = borrowed_cache_bytes(run, stage)
    if run.pipelined:
        peak = pipelined_compute(run, stage, masks + inputs, work, logits) + borrowed
    elif stage.start > 0:
        peak = max(device_behind(run, stage, masks + inputs, work + borrowed, logits), attending_ahead(run, stage))
    elif run.cpu_moe_blocks:
        peak = with_experts_away(run, stage, masks + inputs, work, logits)
    else:
        peak = whole_device(run, masks + inputs, work, logits)
    return max(peak, table.least_compute_bytes)


def host_compute(run: Launched) -> int:
    """Compute buffer in ordinary memory, in bytes."""
    table, sizes = run.table, run.sizes
    e, per_block = sizes.activations, sizes.per_block_inputs
    masks = masks_of(table, sizes, 0, table.trunk)
    inputs = HOST_INPUT_BYTES * sizes.token + sizes.output_ids
    if run.pipelined:
        extra = per_block + e if per_block else 0
        return 10 * e + 9 * run.sizes.stacked_inputs + PIPELINE_COPIES * (masks + inputs) + extra
    peak = input_rows(run) + masks + (per_block + e if per_block else 0)
    if run.cpu_moe_blocks:
        peak = max(peak, experts_on_host(run, masks))
    if run.host_blocks or run.host_has_output:
        peak = max(peak, _blocks_on_host(run, masks))
    return peak + inputs


def borrowed_cache_bytes(run: Launched, stage: Stage) -> int:
    """Copies of caches that blocks of this stage share but that lie on another device."""
    sums, geo = run.table.sums, run.geo
    total = 0
    for uses, owns, k_sums, v_sums, cells in (
        (sums.uses_full, sums.owns_full, sums.k_full, sums.v_full, geo.cells),
        (sums.uses_sliding, sums.owns_sliding, sums.k_sliding, sums.v_sliding, geo.window_cells),
    ):
        borrowers = (uses[stage.end] - uses[stage.start]) - (owns[stage.end] - owns[stage.start])
        if borrowers <= 0 or not owns[-1]:
            continue
        source = owns.index(owns[-1]) - 1
        if stage.start <= source < stage.end:
            continue
        k_width, v_width = k_sums[source + 1] - k_sums[source], v_sums[source + 1] - v_sums[source]
        elements = cells * geo.streams
        one = cache_bytes(elements * k_width, run.launch.type_k) + cache_bytes(elements * v_width, run.launch.type_v)
        total += borrowers * one * (PIPELINE_COPIES if run.pipelined else 1)
    return total


def _blocks_on_host(run: Launched, masks: int) -> int:
    sizes, table = run.sizes, run.table
    e, per_block = sizes.activations, sizes.per_block_inputs
    work = working_bytes(table, sizes, 0, run.host_blocks)
    if table.rules.alternating_updates:
        return max(13 * e + masks + per_block + work, 5 * e + masks + sizes.logits if run.host_has_output else 0)
    stacked = sizes.stacked_inputs
    apart = (5 if table.is_moe else 2) * e if stacked else 3 * e if is_first_mamba(table) else e
    peak = input_rows(run) + apart + masks + per_block + work
    return max(peak, logits_peak(6 * e + 5 * stacked, run, masks, sizes.logits)) if run.host_has_output else peak
