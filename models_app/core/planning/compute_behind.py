"""Compute buffer of a device whose first block gets its input from the host or from another device."""

from __future__ import annotations

from models_app.core.planning.architectures import UNKNOWN as PLAIN
from models_app.core.planning.compute_pipeline import mixing_before
from models_app.core.planning.graph_sizes import masks_of
from models_app.core.planning.kv_types import QUANTISED_TYPES
from models_app.core.planning.launched import SERVER_OUTPUTS, Launched, Stage, block_cache_bytes, runs_experts
from models_app.core.planning.model_facts import ModelTable
from models_app.core.units import MIB

MIDWAY_BYTES = 16 * MIB
"""At most so much of a mask is counted where it may or may not lie in the way."""


def device_behind(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    """A device whose first block gets its input from the host or from another device."""
    e, per_block, experts = run.sizes.activations, run.sizes.per_block_inputs, run.table.experts
    if stage.start == stage.end and run.sizes.last_rows:
        return 2 * run.sizes.last_rows + logits
    if run.table.rules.alternating_updates:
        return max(masks + per_block + 15 * e, masks + 3 * e + work, 2 * e + logits)
    boundary = _boundary_rows(run, stage) * e
    behind_host = stage.start == run.host_blocks
    if behind_host and runs_experts(run, stage) and experts.used >= 4 and not experts.shared_width:
        rows, routed = run.sizes.expert_rows, run.sizes.routed
        boundary = 6 * e
        if experts.gated and rows <= routed - e and run.table.embedding <= 2 * experts.width:
            # Results of the first block with experts have left room below the masks. The gate of the second one goes
            # there, product and results lie on top of up.
            work = max(work, 2 * routed + 2 * rows - 5 * e)
    # The logits of an embedder are kept while the pooled rows are computed.
    below = masks if run.launch.embeddings and run.launch.outputs == SERVER_OUTPUTS else 0
    rows = 3 * e + min(masks, e) if run.table.rules.late_logits else 2 * e
    rules = run.table.rules
    if experts.shared_width and runs_experts(run, stage):
        # The shared expert's rows lie behind those of the routed ones.
        stays = run.table.embedding <= 2 * experts.width and (
            rules.shared_gate or run.launch.type_k not in QUANTISED_TYPES
        )
        rows = 3 * e + (run.sizes.routed if stays else 0)
    if _scatters_small(run, stage, masks):
        rows = 4 * e + masks
    if rules.state == "delta" and rules.recurrent and masks >= 2 * e:
        # The last row lies above the mask or finds room below, as the pieces happen to fit; between the two, both are
        # close while the mask is not large.
        rows = max(rows, (9 * e // 2 if run.table.is_moe else 4 * e) + min(masks // 2, MIDWAY_BYTES))
    last = run.table.caches[-1]
    if last.state_s and rules.recurrent == "no-kv-heads" and rules.state in ("ssm", "ssm1"):
        # The last rows lie on top of the mixer's room, unless a large mask has left some below.
        dense = run.geo.token_bytes * max(item.feed_forward for item in run.table.working_sets)
        mixed = min(work, dense or work)
        rows = max(rows, 3 * e + mixed if masks < 2 * e else 2 * mixed // 3)
    return max(boundary + masks + per_block + work, rows + below + logits, masks + _results_from_host(run, stage))


def _results_from_host(run: Launched, stage: Stage) -> int:
    """Behind another device, with experts of the first blocks on the host: their results are copied here and lie beside
    those that are weighted and beside gate and up of the first experts that are here. 0 elsewhere.
    """
    sizes, experts = run.sizes, run.table.experts
    if not run.host_blocks < stage.start < run.cpu_moe_blocks or not experts.gated:
        return 0
    e, routed = sizes.activations, sizes.routed
    stays = run.table.embedding <= 2 * experts.width
    picks = stage.end == run.table.trunk and sizes.last_rows > 0
    if runs_experts(run, stage._replace(end=stage.end - picks)) and (stays or not experts.shared_width):
        return 2 * routed + 2 * sizes.expert_rows + (2 * e if experts.shared_width else e)
    return 0 if experts.shared_width else 2 * routed + e


def attending_ahead(run: Launched, stage: Stage) -> int:
    """Bytes while the device attends for the last block of the host, for which it needs that block's cache and mask.

    The state of the first mixer behind is cleared before anything is computed from that attention's result
    (`build_rs` and `build_attn` in llama-graph.cpp), so the scheduler, which gives a node without weights to the device
    of the nodes around it, takes it along (`ggml_backend_sched_split_graph`). Norms and experts that are put into the
    graph between the two keep it on the host.
    """
    table, rules = run.table, run.table.rules
    if rules.recurrent not in ("neither", "no-kv-heads") or rules.state not in ("ssm", "ssm1", "conv"):
        return 0
    if not 0 < stage.start == run.host_blocks or stage.start == stage.end or not run.launch.flash_attn:
        return 0
    before = mixing_before(table, stage.start)
    behind = next((index for index in range(stage.start, stage.end) if table.caches[index].kind != "none"), before)
    experts = table.sums.expert_bytes
    if not table.caches[before].attends or table.caches[behind].attends or experts[behind] > experts[before]:
        return 0
    masks = masks_of(table, run.sizes, before, before + 1)
    return masks + block_cache_bytes(run, table.caches[before]) + 2 * run.sizes.queries


def _boundary_rows(run: Launched, stage: Stage) -> int:
    """Rows beside the working set of a device's first block that gets its input from elsewhere."""
    table, rules = run.table, run.table.rules
    if is_first_mamba(table) or _has_wide_queries(table):
        return 5
    dense = rules.gated and not (table.is_moe or table.latent or rules.late_norms or rules.parallel_blocks)
    mixed = rules.recurrent and rules.state != "delta"
    all_rows = stage.has_output and (run.launch.outputs != SERVER_OUTPUTS or run.launch.embeddings)
    return rules.boundary_rows if dense and not mixed and not all_rows else 3


def _scatters_small(run: Launched, stage: Stage, masks: int) -> bool:
    """A narrow feed-forward of the last block fits below the last row, which then lies on top of all room."""
    e, table = run.sizes.activations, run.table
    width = run.geo.token_bytes * max(item.feed_forward for item in table.working_sets) // 3
    plain = table.rules == PLAIN and table.layers[-1].gated and not table.is_moe and not table.latent
    return plain and stage.start == run.host_blocks and masks < e and width <= 2 * e + masks


def is_first_mamba(table: ModelTable) -> bool:
    """Nothing but first-generation mixers: their inputs and gates keep two more rows alive across a boundary."""
    return table.rules.recurrent == "all" and table.rules.state == "ssm1"


def _has_wide_queries(table: ModelTable) -> bool:
    """Full blocks with heads twice as long as the others' (gemma4), where nothing else is as large."""
    return table.rules.shared_cache_key and not table.per_block_inputs and not table.is_moe
