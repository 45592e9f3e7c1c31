"""Compute buffers of several devices that hold a whole model: they work as a pipeline (compute-buffer.md 4).

Rows of activations, beside the working set: 15 on the first device and 10 on every other, and the queries of one block.
"""

from __future__ import annotations

from models_app.core.planning.kv_types import QUANTISED_TYPES
from models_app.core.planning.launched import PIPELINE_COPIES, Launched, Stage, runs_experts
from models_app.core.planning.model_facts import ModelTable


def pipelined_compute(run: Launched, stage: Stage, masks: int, work: int, logits: int) -> int:
    """A device of a pipeline: its inputs are there four times, and what is copied to it and from it is kept beside."""
    table, sizes, experts = run.table, run.sizes, run.table.experts
    e = sizes.activations
    rows, tail = _pipeline_rows(run, stage, work)
    if table.rules.alternating_updates:
        work = max(17 * e, 5 * e + work)
    if runs_experts(run, stage):
        stays = table.embedding <= 2 * experts.width
        if experts.shared_width and table.latent:
            # Beside a shared expert, the result of the down projection finds no room to reuse.
            work = max(work, 3 * sizes.expert_rows + sizes.routed)
        if experts.shared_width:
            # The room of queries that are not compressed themselves is wide enough for them.
            tail = 11 * e + (sizes.routed if stays and (table.compressed_queries or not table.latent) else 0)
    first = 24 * sizes.stacked_inputs if stage.start == 0 else 0
    return PIPELINE_COPIES * (masks + sizes.per_block_inputs) + first + max(rows + work, tail + logits)


def _pipeline_rows(run: Launched, stage: Stage, work: int) -> tuple[int, int]:
    """Bytes of activations on one device: beside the working set, and beside the logits."""
    table, rules, e = run.table, run.table.rules, run.sizes.activations
    is_first = stage.start == 0
    if rules.alternating_updates:
        return 46 * e, 46 * e
    if rules.late_norms and not is_first:
        return 7 * e, 5 * e
    if rules.state in ("wkv", "wkv6") and rules.recurrent:
        return (20 * e, 20 * e) if is_first else (21 * e, 21 * e)
    is_quantised = run.launch.type_k in QUANTISED_TYPES and run.launch.type_v in QUANTISED_TYPES
    incoming, outgoing = (_crossing(run, boundary, is_quantised) for boundary in (stage.start, stage.end))
    if incoming or outgoing:
        return _rows_at_crossings(run, incoming, outgoing, is_first=is_first)
    queries = max(run.sizes.queries, e)
    plain = rules.gated and not (rules.late_norms or rules.parallel_blocks or table.is_moe or rules.recurrent)
    if plain and is_quantised:
        # Turned for a quantised cache, queries take the place of the norm's result when they are as wide; narrower ones
        # leave pieces that nothing fits into.
        if run.sizes.queries == e and not table.window:
            queries = 0
        elif run.sizes.queries < e:
            queries = max(e, 2 * run.sizes.queries)
    if rules.state == "delta" and rules.recurrent and work == 4 * run.sizes.queries:
        # Attention with gated queries is the largest working set itself.
        queries = 0
    return (15 * e + queries, 16 * e) if is_first else (10 * e + queries, 10 * e)


def _crossing(run: Launched, boundary: int, is_quantised: bool) -> str:
    """What goes to the next device beside the rows of activations: a `result` of attention, what a `mixer` projects, or
    nothing.
    """
    if not 0 < boundary < run.table.trunk:
        return ""
    if is_quantised and _result_crosses(run.table, boundary):
        return "result"
    return "mixer" if _has_projections(run.table) and _mixer_crosses(run.table, boundary) else ""


def _rows_at_crossings(run: Launched, incoming: str, outgoing: str, *, is_first: bool) -> tuple[int, int]:
    """Copies are kept where they are made and where they go to; a mixer's come with the gate, and lie between others'
    room there. Devices in the middle have both.
    """
    e, one_part = run.sizes.activations, run.table.rules.recurrent == "neither"
    inner = run.geo.token_bytes * run.table.mixer_inner
    copied = {"result": run.sizes.queries, "mixer": inner, "": 0}
    rows = (15 if is_first else 10) * e + PIPELINE_COPIES * (copied[incoming] + copied[outgoing])
    if incoming == "mixer":
        rows += PIPELINE_COPIES * inner + inner // 2
    # Where a block is a mixer or attention or a feed-forward, up to two rows more lie beside the mixer.
    rows += e * (one_part or "mixer" in (incoming, outgoing)) + e * (one_part and not is_first)
    return rows, rows + (e if is_first and outgoing == "result" else 0)


def _result_crosses(table: ModelTable, boundary: int) -> bool:
    """The block before this boundary attends and the one behind it does not: the result of attention, turned back for a
    quantised cache, is one more input then. Gates keep it apart, and so do experts beside convolutions or mixers of the
    second generation.
    """
    rules = table.rules
    if not rules.recurrent or rules.state == "delta" or (rules.state in ("ssm", "conv") and table.is_moe):
        return False
    return not table.caches[boundary].attends and table.caches[mixing_before(table, boundary)].attends


def mixing_before(table: ModelTable, boundary: int) -> int:
    """The last block before a boundary that attends or has a mixer."""
    before = boundary - 1
    while table.rules.recurrent == "neither" and before > 0 and table.caches[before].kind == "none":
        before -= 1
    return before


def _mixer_crosses(table: ModelTable, boundary: int) -> bool:
    """At this boundary a mixer's projections go along. Attention behind it, or experts or attention before it, keep
    them apart.
    """
    if table.rules.recurrent == "all":
        return True
    if table.caches[boundary].attends or table.caches[mixing_before(table, boundary)].attends:
        return False
    sums = table.sums.expert_bytes
    return table.rules.recurrent == "neither" or sums[boundary] == sums[boundary - 1]


def _has_projections(table: ModelTable) -> bool:
    """State-space mixers, whose projections lie between what goes to the next device."""
    rules = table.rules
    if rules.state not in ("ssm", "ssm1") or (rules.state in ("ssm", "conv") and table.is_moe):
        return False
    return rules.recurrent in ("neither", "all", "no-kv-heads")
