"""Compute buffers where the host runs experts of blocks that lie on a device (`--n-cpu-moe`)."""

from __future__ import annotations

from models_app.core.planning.compute_alone import input_rows, whole_device
from models_app.core.planning.launched import Launched, Stage, runs_experts
from models_app.core.units import MIB


def with_experts_away(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    """A device that starts with the first block but has left experts of it on the host."""
    table, sizes = run.table, run.sizes
    e = sizes.activations
    if _mask_is_spent(run):
        return whole_device(run, masks, work, logits)
    peak = max(4 * e + masks + sizes.per_block_inputs + work, (5 if table.rules.scaled_experts else 4) * e + logits)
    if table.caches[0].attends:
        return peak
    # Block 0 is recurrent: the mask is placed late, on top of what the first experts left behind.
    peak = max(peak, 4 * e + masks + sizes.routed + _above_late_mask(run))
    if runs_experts(run, stage):
        twice = sizes.routed if table.embedding > 2 * table.experts.width else 0
        peak = max(peak, 4 * e + masks + sizes.routed + twice)
    return peak


def _above_late_mask(run: Launched) -> int:
    """What recurrent blocks and latent attention need beyond the room that the first experts left below the mask."""
    table, e, token = run.table, run.sizes.activations, run.geo.token_bytes
    dense = token * max((item.feed_forward for item in table.working_sets), default=0)
    largest = e + (max(token * table.mixer_input, dense) if table.rules.state not in ("ssm", "delta") else dense)
    for item in table.working_sets:
        if item.attention_parts:
            largest = max(largest, (0 if table.latent else e) + _beyond_room(run, item.attention_parts))
        elif item.mixer_parts:
            *parts, state = item.mixer_parts
            scan = state + item.mixer_state * run.geo.slots // run.geo.tokens
            largest = max(largest, e + _beyond_room(run, (*parts, scan)))
    return largest


def _beyond_room(run: Launched, parts: tuple[int, ...]) -> int:
    """Bytes of parts (floats per token, in the order of their making) that don't fit into the room of the routed
    experts' results.
    """
    room, beyond = run.sizes.routed, 0
    for part in parts:
        size = run.geo.token_bytes * part
        if size <= room:
            room -= size
        else:
            beyond += size
    return beyond


def _mask_is_spent(run: Launched) -> bool:
    """By the first block whose experts are on the host, some block has read the mask of the full cache."""
    sums = run.table.sums
    experts = sums.expert_bytes
    first = next(index for index in range(run.host_blocks, run.table.trunk) if experts[index + 1] > experts[index])
    return sums.uses_full[first + 1] > 0


def experts_on_host(run: Launched, masks: int) -> int:
    """The host runs experts of blocks that lie on a device."""
    sizes, table = run.sizes, run.table
    e, rows, routed = sizes.activations, sizes.expert_rows, sizes.routed
    if not table.experts.gated:
        return 2 * e + masks + rows + routed
    if sizes.stacked_inputs:
        # With several devices others still read the mask, so gate and up find no room there.
        return input_rows(run) + masks + routed + (2 * rows if run.launch.devices > 1 else 0)
    # The mask's room is used again once block 0 has read it; with several devices others still do.
    reusable = _mask_is_spent(run) and run.launch.devices == 1
    free = max(0, sizes.full_mask - MIB) if reusable else sizes.decays
    if not reusable and rows <= e:
        # The product finds room beside the input, and the results take the place of gate and up.
        return 2 * e + masks + max(2 * rows, routed)
    if free >= 3 * rows:
        # Beside all three, the results fit only into much more; they leave bit by bit, so that a longer context never
        # seems to need less.
        spare = max(0, free - 3 * rows - routed)
        return 2 * e + masks + (max(0, routed - spare) if routed > 2 * rows else 0)
    reused = min(2, free // rows) if rows else 0
    tail = routed if routed > max(free, (2 - reused) * rows) else 0
    beside = 5 * e if table.rules.parallel_blocks else 0
    return 2 * e + masks + (3 - reused) * rows + tail + beside
