"""Compute buffers on a device that keeps all of its work to itself, and on the host (compute-buffer.md 4).

The formulas follow where the allocator's peak lies. They hold for devices such as RPC; what CUDA adds is in
`compute_cuda`.
"""

from __future__ import annotations

from models_app.core.planning.compute_pipeline import pipelined_compute
from models_app.core.planning.context import cache_bytes
from models_app.core.planning.graph_sizes import masks_of, working_bytes
from models_app.core.planning.kv_types import QUANTISED_TYPES
from models_app.core.planning.launched import PIPELINE_COPIES, Launched, Stage, runs_experts
from models_app.core.planning.model_facts import ModelTable
from models_app.core.units import MIB

SERVER_OUTPUTS = "server"

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
        peak = _behind_another(run, stage, masks + inputs, work + borrowed, logits)
    elif run.cpu_moe_blocks:
        peak = _with_experts_away(run, stage, masks + inputs, work, logits)
    else:
        peak = _whole(run, masks + inputs, work, logits)
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
    peak = _input_rows(run) + masks + (per_block + e if per_block else 0)
    if run.cpu_moe_blocks:
        peak = max(peak, _experts_on_host(run, masks))
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


def _input_rows(run: Launched) -> int:
    """Rows of activations that the input takes: tokens, ready embeddings, a mix of both, and the copy that is mixed.

    Rows with image features are wider in three of them.
    """
    return 4 * run.sizes.activations + 3 * run.sizes.stacked_inputs


def _whole(run: Launched, masks: int, work: int, logits: int) -> int:
    """A device that starts with the first block."""
    e, per_block = run.sizes.activations, run.sizes.per_block_inputs
    if run.table.rules.alternating_updates:
        return max(masks + per_block + max(21 * e, 9 * e + work), 2 * e + logits)
    if run.sizes.stacked_inputs:
        return _behind_wide_input(run, masks, work, logits)
    rows = 5 * e if run.table.rules.parallel_blocks and run.table.window else 4 * e
    peak = _scattered_logits(run, masks, logits) if run.table.rules.state == "ssm1" else 0
    return max(4 * e + masks + per_block + work, _logits_peak(rows, run, masks, logits), peak)


def _logits_peak(rows: int, run: Launched, masks: int, logits: int) -> int:
    """The peak while logits are computed. They fit into the room that masks leave behind once that is large enough.

    For a server the largest peak before that stands from there on, so that a longer context never seems to need less;
    the figures of llama-fit-params are reproduced with the step.
    """
    room = 2 * run.sizes.activations
    if logits <= room or (run.launch.outputs != SERVER_OUTPUTS and logits <= masks + room):
        return 0
    return rows + min(masks, logits - room) + run.sizes.per_block_inputs + logits


def _behind_wide_input(run: Launched, masks: int, work: int, logits: int) -> int:
    """A wide input lives on until early blocks have added their rows of it; behind it, logits find no room."""
    table, sizes = run.table, run.sizes
    e, early = sizes.activations, min(table.stacked_inputs, table.trunk)
    first = working_bytes(table, sizes, 0, early, run.cpu_moe_blocks)
    held = _input_rows(run) + sizes.stacked_inputs + 4 * e + masks
    scattered = sizes.routed if table.is_moe and not run.cpu_moe_blocks else 0
    peak = max(held + first + (3 * e if scattered else 0), 4 * e + masks + work)
    return max(peak, held + first - scattered + logits if logits > peak else 0)


def _is_first_mamba(table: ModelTable) -> bool:
    """Nothing but first-generation mixers: their inputs and gates keep two more rows alive across a boundary."""
    return table.rules.recurrent == "all" and table.rules.state == "ssm1"


def _has_wide_queries(table: ModelTable) -> bool:
    """Full blocks with heads twice as long as the others' (gemma4), where nothing else is as large."""
    return table.rules.shared_cache_key and not table.per_block_inputs and not table.is_moe


def _scattered_logits(run: Launched, masks: int, logits: int) -> int:
    """Logits behind first-generation mixers: the last attention is far back, and its mask's room is used for others."""
    table, e = run.table, run.sizes.activations
    if logits <= 2 * e or not table.sums.uses_full[-1]:
        return 0
    mixer = run.geo.token_bytes * max(item.mixer for item in table.working_sets)
    return logits + max(masks + 4 * e, min(masks, 2 * e) + mixer + e)


def _behind_another(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    """A device whose first block gets its input from the host or from another device."""
    e, per_block, experts = run.sizes.activations, run.sizes.per_block_inputs, run.table.experts
    if run.table.rules.alternating_updates:
        return max(masks + per_block + 15 * e, masks + 3 * e + work, 2 * e + logits)
    boundary = 5 * e if _is_first_mamba(run.table) or _has_wide_queries(run.table) else 3 * e
    behind_host = stage.start == run.host_blocks
    if behind_host and runs_experts(run, stage) and experts.used >= 4 and not experts.shared_width:
        boundary = 6 * e
        if experts.gated and run.table.embedding == 2 * experts.width:
            work = max(work, 3 * run.sizes.expert_rows + run.sizes.routed)
    # The logits of an embedder are kept while the pooled rows are computed.
    below = masks if run.launch.embeddings and run.launch.outputs == SERVER_OUTPUTS else 0
    rows = 3 * e + min(masks, e) if run.table.rules.late_logits else 2 * e
    if experts.shared_width and runs_experts(run, stage):
        # The shared expert's rows lie behind those of the routed ones.
        stays = run.table.embedding <= 2 * experts.width and run.launch.type_k not in QUANTISED_TYPES
        rows = 3 * e + (run.sizes.routed if stays else 0)
    last, rules = run.table.caches[-1], run.table.rules
    if last.state_s and rules.recurrent == "no-kv-heads" and rules.state in ("ssm", "ssm1"):
        # The last rows lie on top of the mixer's room, unless a large mask has left some below.
        dense = run.geo.token_bytes * max(item.feed_forward for item in run.table.working_sets)
        mixed = min(work, dense or work)
        rows = max(rows, 3 * e + mixed if masks < 2 * e else 2 * mixed // 3)
    return max(boundary + masks + per_block + work, rows + below + logits)


def _with_experts_away(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    """A device that starts with the first block but has left experts of it on the host."""
    table, sizes = run.table, run.sizes
    e = sizes.activations
    if _mask_is_spent(run):
        return _whole(run, masks, work, logits)
    peak = max(4 * e + masks + sizes.per_block_inputs + work, (5 if table.rules.scaled_experts else 4) * e + logits)
    if table.caches[0].attends:
        return peak
    # Block 0 is recurrent: the mask is placed late, on top of what the first experts left behind.
    dense = run.geo.token_bytes * max((item.feed_forward for item in table.working_sets), default=0)
    mixed = run.geo.token_bytes * table.mixer_input
    peak = max(peak, 4 * e + masks + sizes.routed + e + max(mixed, dense))
    if runs_experts(run, stage):
        twice = sizes.routed if table.embedding > 2 * table.experts.width else 0
        peak = max(peak, 4 * e + masks + sizes.routed + twice)
    return peak


def _mask_is_spent(run: Launched) -> bool:
    """By the first block whose experts are on the host, some block has read the mask of the full cache."""
    sums = run.table.sums
    experts = sums.expert_bytes
    first = next(index for index in range(run.host_blocks, run.table.trunk) if experts[index + 1] > experts[index])
    return sums.uses_full[first + 1] > 0


def _experts_on_host(run: Launched, masks: int) -> int:
    """The host runs experts of blocks that lie on a device."""
    sizes, table = run.sizes, run.table
    e, rows, routed = sizes.activations, sizes.expert_rows, sizes.routed
    if not table.experts.gated:
        return 2 * e + masks + rows + routed
    if sizes.stacked_inputs:
        return _input_rows(run) + masks + routed
    # The mask's room is used again once block 0 has read it; with several devices others still do.
    reusable = _mask_is_spent(run) and run.launch.devices == 1
    free = max(0, sizes.full_mask - MIB) if reusable else 0
    reused = min(2, free // rows) if rows else 0
    tail = routed if routed > max(free, (2 - reused) * rows) else 0
    beside = 5 * e if table.rules.parallel_blocks else 0
    return 2 * e + masks + (3 - reused) * rows + tail + beside


def _blocks_on_host(run: Launched, masks: int) -> int:
    sizes, table = run.sizes, run.table
    e, per_block = sizes.activations, sizes.per_block_inputs
    work = working_bytes(table, sizes, 0, run.host_blocks)
    if table.rules.alternating_updates:
        return max(13 * e + masks + per_block + work, 5 * e + masks + sizes.logits if run.host_has_output else 0)
    stacked = sizes.stacked_inputs
    apart = (5 if table.is_moe else 2) * e if stacked else 3 * e if _is_first_mamba(table) else e
    peak = _input_rows(run) + apart + masks + per_block + work
    return max(peak, _logits_peak(6 * e + 5 * stacked, run, masks, sizes.logits)) if run.host_has_output else peak
