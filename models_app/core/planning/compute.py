"""Compute buffers on a device that keeps all of its work to itself, and on the host (compute-buffer.md 4).

The formulas follow where the allocator's peak lies. They hold for devices such as RPC; what CUDA adds is in
`compute_cuda`.
"""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.catalog import Launch
from models_app.core.planning.context import cache_bytes
from models_app.core.planning.geometry import Geometry
from models_app.core.planning.graph_sizes import GraphSizes, masks_of, working_bytes
from models_app.core.planning.model_facts import ModelTable
from models_app.core.units import MIB

PIPELINE_COPIES = 4
"""Copies of every input that a pipeline over several devices keeps."""

SERVER_OUTPUTS = "server"

HOST_INPUT_BYTES = 36
FIRST_INPUT_BYTES = 28
FURTHER_INPUT_BYTES = 20
"""Token ids, positions and cache indices, per token, where they are needed."""


class Stage(NamedTuple):
    """One device's part of a launch."""

    start: int
    end: int
    """Blocks from `start` up to but not `end`."""
    has_output: bool


class Launched(NamedTuple):
    """A launch taken apart, as the rules below need it."""

    table: ModelTable
    launch: Launch
    geo: Geometry
    sizes: GraphSizes
    host_blocks: int
    """Blocks that lie on the host."""
    host_has_output: bool
    cpu_moe_blocks: int
    """Blocks below this one have their experts on the host; 0 when no expert is moved by that."""
    pipelined: bool


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
    if run.pipelined:
        peak = _pipelined(run, stage, masks + inputs, work, logits)
    elif stage.start > 0:
        peak = _behind_another(run, stage, masks + inputs, work, logits)
    elif run.cpu_moe_blocks:
        peak = _with_experts_away(run, stage, masks + inputs, work, logits)
    else:
        peak = _whole(run, masks + inputs, work, logits)
    return max(peak + borrowed_cache_bytes(run, stage), table.least_compute_bytes)


def host_compute(run: Launched) -> int:
    """Compute buffer in ordinary memory, in bytes."""
    table, sizes = run.table, run.sizes
    e, per_block = sizes.activations, sizes.per_block_inputs
    masks = masks_of(table, sizes, 0, table.trunk)
    inputs = HOST_INPUT_BYTES * sizes.token + sizes.output_ids
    if run.pipelined:
        extra = PIPELINE_COPIES * per_block + e if per_block else 0
        return 10 * e + PIPELINE_COPIES * (masks + inputs) + extra
    peak = 4 * e + masks + (per_block + e if per_block else 0)
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
        total += borrowers * one
    return total


def _whole(run: Launched, masks: int, work: int, logits: int) -> int:
    """A device that starts with the first block."""
    e, per_block = run.sizes.activations, run.sizes.per_block_inputs
    if run.table.rules.alternating_updates:
        return max(masks + per_block + max(21 * e, 9 * e + work), 2 * e + logits)
    return max(4 * e + masks + per_block + work, _logits_peak(4 * e, run, masks, logits))


def _logits_peak(rows: int, run: Launched, masks: int, logits: int) -> int:
    """The peak while logits are computed. They fit into the room that masks leave behind once that is large enough.

    For a server the largest peak before that stands from there on, so that a longer context never seems to need less;
    the figures of llama-fit-params are reproduced with the step.
    """
    room = 2 * run.sizes.activations
    if logits <= room or (run.launch.outputs != SERVER_OUTPUTS and logits <= masks + room):
        return 0
    return rows + min(masks, logits - room) + run.sizes.per_block_inputs + logits


def _behind_another(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    """A device whose first block gets its input from the host or from another device."""
    e, per_block, experts = run.sizes.activations, run.sizes.per_block_inputs, run.table.experts
    if run.table.rules.alternating_updates:
        return max(masks + per_block + 15 * e, masks + 3 * e + work, 2 * e + logits)
    boundary = 3 * e
    if _runs_experts(run, stage) and experts.used >= 4 and not experts.shared_width:
        boundary = 6 * e
        if experts.gated and run.table.embedding == 2 * experts.width:
            work = max(work, 3 * run.sizes.expert_rows + run.sizes.routed)
    # The logits of an embedder are kept while the pooled rows are computed.
    below = masks if run.launch.embeddings and run.launch.outputs == SERVER_OUTPUTS else 0
    return max(boundary + masks + per_block + work, 2 * e + below + logits)


def _runs_experts(run: Launched, stage: Stage) -> bool:
    """Some block of this stage has its experts here."""
    sums = run.table.sums.expert_bytes
    start = min(max(stage.start, run.cpu_moe_blocks), stage.end)
    return sums[stage.end] > sums[start]


def _pipelined(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    e, per_block = run.sizes.activations, run.sizes.per_block_inputs
    if run.table.rules.alternating_updates:
        work = max(17 * e, 5 * e + work)
    if run.table.experts.shared_width and _runs_experts(run, stage):
        # Seen with deepseek2 alone: beside a shared expert, the result of the down projection finds no room to reuse.
        work = max(work, 3 * run.sizes.expert_rows + run.sizes.routed)
    rows = 16 * e if stage.start == 0 else 11 * e
    return rows + PIPELINE_COPIES * (masks + per_block) + max(work, logits)


def _with_experts_away(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    """A device that starts with the first block but has left experts of it on the host."""
    table, sizes = run.table, run.sizes
    e = sizes.activations
    first = table.caches[0]
    if first.attends and not first.sliding:
        return _whole(run, masks, work, logits)
    peak = max(4 * e + masks + sizes.per_block_inputs + work, 4 * e + logits)
    if first.attends:
        return peak
    # Block 0 is recurrent: the mask is placed late, on top of what the first experts left behind.
    dense = run.geo.token_bytes * max((item.feed_forward for item in table.working_sets), default=0)
    mixed = run.geo.token_bytes * table.mixer_input
    peak = max(peak, 4 * e + masks + sizes.routed + e + max(mixed, dense))
    if _runs_experts(run, stage):
        twice = sizes.routed if table.embedding > 2 * table.experts.width else 0
        peak = max(peak, 4 * e + masks + sizes.routed + twice)
    return peak


def _experts_on_host(run: Launched, masks: int) -> int:
    """The host runs experts of blocks that lie on a device."""
    sizes, table = run.sizes, run.table
    e, rows, routed = sizes.activations, sizes.expert_rows, sizes.routed
    if not table.experts.gated:
        return 2 * e + masks + rows + routed
    first = table.caches[0]
    # The mask of block 0 is consumed by then, and its room is used again; with several devices others still read it.
    reusable = first.attends and not first.sliding and run.launch.devices == 1
    free = max(0, masks - MIB) if reusable else 0
    reused = min(2, free // rows) if rows else 0
    tail = routed if routed > max(free, (2 - reused) * rows) else 0
    return 2 * e + masks + (3 - reused) * rows + tail


def _blocks_on_host(run: Launched, masks: int) -> int:
    sizes, table = run.sizes, run.table
    e, per_block = sizes.activations, sizes.per_block_inputs
    work = working_bytes(table, sizes, 0, run.host_blocks)
    if table.rules.alternating_updates:
        return max(13 * e + masks + per_block + work, 5 * e + masks + sizes.logits if run.host_has_output else 0)
    peak = 5 * e + masks + per_block + work
    return max(peak, _logits_peak(6 * e, run, masks, sizes.logits)) if run.host_has_output else peak
