"""Compute buffer of a device that starts with the first block, and what any place has in common with it."""

from __future__ import annotations

from models_app.core.planning.graph_sizes import working_bytes
from models_app.core.planning.kv_types import QUANTISED_TYPES
from models_app.core.planning.launched import SERVER_OUTPUTS, Launched


def whole_device(run: Launched, masks: int, work: int, logits: int) -> int:
    """A device that starts with the first block."""
    e, per_block = run.sizes.activations, run.sizes.per_block_inputs
    if run.table.rules.alternating_updates:
        return max(masks + per_block + max(21 * e, 9 * e + work), 2 * e + logits)
    if run.sizes.stacked_inputs:
        return _behind_wide_input(run, masks, work, logits)
    peak = _scattered_logits(run, masks, logits) if run.table.rules.state == "ssm1" else 0
    if _result_lies_on_top(run):
        work = e + _below_result(run, work)
    rows = 4 * e + _last_row(run)
    work = max(work, _experts_in_spent_mask(run, masks))
    return max(4 * e + masks + per_block + work, logits_peak(rows, run, masks, logits), peak)


def _experts_in_spent_mask(run: Launched, masks: int) -> int:
    """Working set of the last block's experts where the gate goes into the room of the mask, which nobody reads any
    more: the results then find no room that is wide enough. 0 where that does not happen: it takes logits for all rows,
    and queries that were not turned for a quantised cache.
    """
    table, sizes = run.table, run.sizes
    last = table.trunk - 1
    sums = table.sums.expert_bytes
    runs_here = sums[-1] > sums[last] and run.cpu_moe_blocks <= last
    all_rows = run.launch.outputs != SERVER_OUTPUTS or run.launch.embeddings
    if not (runs_here and all_rows and table.experts.gated and table.caches[last].attends and not _are_turned(run)):
        return 0
    return 2 * sizes.expert_rows + sizes.routed if sizes.expert_rows <= masks + sizes.activations else 0


def _are_turned(run: Launched) -> bool:
    """Queries are turned for a quantised cache."""
    return run.launch.type_k in QUANTISED_TYPES and run.launch.type_v in QUANTISED_TYPES


def _has_narrow_queries(run: Launched) -> bool:
    return 0 < run.sizes.queries < run.sizes.activations


def _result_lies_on_top(run: Launched) -> bool:
    """The result of attention finds no room below the masks. Queries that are narrower than a row and are turned for a
    quantised cache leave only pieces there.
    """
    rules = run.table.rules
    if rules.recurrent or rules.parallel_blocks:
        return rules.result_on_top
    return rules.result_on_top or (_are_turned(run) and _has_narrow_queries(run))


def _below_result(run: Launched, work: int) -> int:
    """The working set with that room free again: the product of gate and up takes it if it fits."""
    widest = run.geo.token_bytes * max((item.feed_forward for item in run.table.working_sets), default=0)
    fits = run.table.rules.gated and work == widest and widest <= 9 * run.sizes.activations
    return work - widest // 3 if fits else work


def _last_row(run: Launched) -> int:
    """What the last row adds before the logits. In some graphs it lies above all others or finds room below, as the
    mask happens to fit; three quarters of it keep both cases close.
    """
    table, rules, e = run.table, run.table.rules, run.sizes.activations
    if rules.state == "wkv6" and rules.recurrent:
        return e
    scattered = rules.scattered_rows or (_has_narrow_queries(run) and not table.is_moe and not rules.recurrent)
    return 3 * e // 4 if scattered else 0


def logits_peak(rows: int, run: Launched, masks: int, logits: int) -> int:
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
    if run.cpu_moe_blocks:
        return 5 * e + 4 * sizes.stacked_inputs + masks + max(work, logits)
    first = working_bytes(table, sizes, 0, early, run.cpu_moe_blocks)
    held = input_rows(run) + sizes.stacked_inputs + 4 * e + masks
    scattered = sizes.routed if table.is_moe and not run.cpu_moe_blocks else 0
    peak = max(held + first + (3 * e if scattered else 0), 4 * e + masks + work)
    return max(peak, held + first - scattered + logits if logits > peak else 0)


def _scattered_logits(run: Launched, masks: int, logits: int) -> int:
    """Logits behind first-generation mixers: the last attention is far back, and its mask's room is used for others."""
    table, e = run.table, run.sizes.activations
    if logits <= 2 * e or not table.sums.uses_full[-1]:
        return 0
    mixer = run.geo.token_bytes * max(item.mixer for item in table.working_sets)
    return logits + max(masks + 4 * e, min(masks, 2 * e) + mixer + e)


def input_rows(run: Launched) -> int:
    """Rows of activations that the input takes: tokens, ready embeddings, a mix of both, and the copy that is mixed.

    Rows with image features are wider in three of them.
    """
    return 4 * run.sizes.activations + 3 * run.sizes.stacked_inputs
