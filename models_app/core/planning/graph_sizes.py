"""The terms that compute buffers are sums of, for one launch (compute-buffer.md 4)."""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.catalog import Launch
from models_app.core.planning.geometry import Geometry
from models_app.core.planning.kv_types import QUANTISED_TYPES
from models_app.core.planning.model_facts import ModelTable
from models_app.core.planning.working_sets import WorkingSet
from models_app.core.readers.weights import ALIGNMENT_BYTES
from models_app.core.units import pad

LOGIT_BYTES = 4
OUTPUT_ID_BYTES = 4
F16_BYTES = 2
V_INDEX_BYTES = 8
NEARLY_A_ROW = 1.22


class BlockBytes(NamedTuple):
    """Working set of one kind of block: with its experts beside it, with its experts on the host, and without
    feed-forward and experts.
    """

    own_experts: int
    host_experts: int
    mixing: int

    def at_least(self, size: int) -> BlockBytes:
        """The same where attention or the mixer holds so much."""
        return BlockBytes(max(self.own_experts, size), max(self.host_experts, size), max(self.mixing, size))

    def of_rows(self, rows: int, tokens: int) -> BlockBytes:
        """The same where no more than so many rows of a micro-batch go on behind attention (`inp_out_ids`)."""
        mixing = self.mixing
        own, host = self.own_experts * rows // tokens, self.host_experts * rows // tokens
        return BlockBytes(max(mixing, own), max(mixing, host), mixing)


class GraphSizes(NamedTuple):
    """Bytes; the letters of the source in brackets."""

    activations: int
    """One row of activations for every token (e)."""
    full_mask: int
    window_mask: int
    per_block_inputs: int
    """(P)"""
    stacked_inputs: int
    """One copy of the rows that widen the input."""
    queries: int
    """Of one block, the widest."""
    decays: int
    """Decay of lightning attention between any two tokens of a sequence, an input like the masks."""
    logits: int
    """(R)"""
    token: int
    """One byte for every token of a micro-batch: the unit of token ids, positions and cache indices (small)."""
    output_ids: int
    routed: int
    """Activations times experts per token (kE)."""
    expert_rows: int
    """Expert width times experts per token (kx)."""
    blocks: tuple[BlockBytes, ...]
    """For each distinct working set of the table."""
    last_block: BlockBytes
    """Of the last block, which goes on behind attention with nothing but the rows that logits are wanted for."""
    last_rows: int
    """Activations of these rows, which are what crosses to a device that holds the output alone; 0 where the rows are
    picked behind the last block, or it is not known where.
    """


def graph_sizes(table: ModelTable, launch: Launch, geo: Geometry, *, cuda: bool = False) -> GraphSizes:
    """All terms of a launch. `cuda`: the device keeps an f16 copy of what it attends to (compute-buffer.md 6.1)."""
    per_token, experts = geo.token_bytes, table.experts
    full_mask, window_mask = _masks(table, launch, geo)
    rows = output_rows(table, launch, geo)
    quantised = launch.type_k in QUANTISED_TYPES or launch.type_v in QUANTISED_TYPES
    flash = launch.flash_attn and table.rules.flash
    decays = _decay_bytes(table, geo)
    copies = cuda and flash and not launch.type_k == launch.type_v == "f16"
    blocks = []
    for item in table.working_sets:
        block = _block_bytes(item, geo, table, quantised=quantised, flash=flash)
        if decays and item.recurrent:
            # The scores, and the scores times the decay.
            block = block.at_least(geo.token_bytes * item.mixer + 2 * decays)
        if copies:
            block = block.at_least(_converted_cache_bytes(table, item, launch, geo))
        blocks.append(block)
    last, last_rows = blocks[table.last_set], rows if table.picks_rows_early and rows < geo.tokens else 0
    return GraphSizes(
        activations=per_token * table.embedding,
        full_mask=full_mask,
        window_mask=window_mask,
        per_block_inputs=per_token * table.per_block_inputs,
        stacked_inputs=per_token * table.embedding * table.stacked_inputs,
        queries=per_token
        * max((item.heads * item.key_length for item in table.working_sets), default=0)
        * (not table.latent),
        decays=decays,
        logits=LOGIT_BYTES * table.vocabulary * rows,
        token=geo.tokens,
        output_ids=pad(OUTPUT_ID_BYTES * rows, ALIGNMENT_BYTES),
        routed=per_token * experts.used * table.embedding,
        expert_rows=per_token * experts.used * experts.width,
        blocks=tuple(blocks),
        last_block=last.of_rows(last_rows, geo.tokens) if last_rows else last,
        last_rows=LOGIT_BYTES * table.embedding * last_rows,
    )


def output_rows(table: ModelTable, launch: Launch, geo: Geometry) -> int:
    """Rows of logits: one a slot as the server asks, all of a micro-batch as llama-fit-params and embedders do."""
    if not table.rules.causal:
        return 0
    if launch.outputs == "all" or launch.embeddings:
        return geo.tokens
    return min(geo.tokens, geo.slots * (1 + launch.draft_tokens))


def _masks(table: ModelTable, launch: Launch, geo: Geometry) -> tuple[int, int]:
    """Mask of the full caches and of the sliding ones: half floats with flash attention, floats without. Then V is
    stored transposed, and every element of it needs an index beside its mask.
    """
    per_cell = (2 if launch.flash_attn and table.rules.flash else 4) * geo.tokens
    if not table.rules.has_cache:
        square = per_cell * geo.tokens
        return square, square if table.window else 0
    indices = 0 if launch.flash_attn else V_INDEX_BYTES * geo.tokens * table.v_width_largest
    return per_cell * geo.cells + indices, per_cell * geo.window_cells + indices


def _decay_bytes(table: ModelTable, geo: Geometry) -> int:
    if table.rules.state != "lightning":
        return 0
    heads = max((item.mixer_heads for item in table.working_sets), default=0)
    return heads * geo.token_bytes * (geo.tokens // geo.slots)


def _block_bytes(item: WorkingSet, geo: Geometry, table: ModelTable, *, quantised: bool, flash: bool) -> BlockBytes:
    per_token, embedding = geo.token_bytes, table.embedding
    beside = max(item.beside, item.beside_quantised if quantised else 0)
    feed_forward = item.feed_forward + beside if item.feed_forward else 0
    mixer = per_token * item.mixer + 4 * geo.slots * item.mixer_state
    if item.projections:
        feed_forward = _feed_forward_behind_mixer(item, geo, embedding, quantised=quantised)
    if table.rules.state in ("ssm", "ssm1", "delta"):
        mixer += _kept_beside_mixer(item, geo, embedding, reads_own=table.rules.state == "delta")
    attention = item.attention if flash else _plain_attention(item, geo, embedding)
    mixing = max(per_token * max(attention, item.latent), mixer)
    common = max(per_token * feed_forward, mixing)
    own = item.experts + (item.beside_experts if item.experts else 0)
    routed = item.routed + (item.beside_experts if item.routed else 0)
    return BlockBytes(max(common, per_token * own), max(common, per_token * routed), mixing)


def _feed_forward_behind_mixer(item: WorkingSet, geo: Geometry, embedding: int, *, quantised: bool) -> int:
    """Floats per token of a feed-forward behind a mixer and attention that have run side by side."""
    written = geo.token_bytes * item.mixer_parts[-1] + 4 * geo.slots * item.mixer_state
    if written > NEARLY_A_ROW * geo.token_bytes * embedding:
        return item.feed_forward + (embedding if item.kept_result else 0)
    if quantised and item.kept_result:
        # Queries that are turned for a quantised cache take the place of the projections.
        return item.feed_forward
    room, width = 2 * embedding + item.projections, item.feed_forward // 3
    if width <= min(room, 3 * embedding):
        # The gate goes into that room, the product into that of the input.
        return embedding + room + width
    return room + item.feed_forward


def _kept_beside_mixer(item: WorkingSet, geo: Geometry, embedding: int, *, reads_own: bool) -> int:
    """Bytes of the result of attention, and of the states that are copied before the mixer runs and find no room (in
    `build_rs` of llama-graph.cpp): of all sequences, or of all but one where the mixer reads those where they lie.
    """
    states = 4 * (geo.slots if reads_own else geo.slots - 1) * item.mixer_state
    return geo.token_bytes * item.kept_result + (states if states > geo.token_bytes * embedding else 0)


def _plain_attention(item: WorkingSet, geo: Geometry, embedding: int) -> int:
    """Without the flash kernel the scores of all heads are there at once (sizing.md 18.6)."""
    if not item.heads:
        return 0
    cells = geo.window_cells if item.sliding else geo.cells
    keys = (3 * item.heads + 2 * item.kv_heads) * item.key_length
    return max(item.attention, item.heads * cells + keys - 2 * embedding)


def _converted_cache_bytes(table: ModelTable, item: WorkingSet, launch: Launch, geo: Geometry) -> int:
    """Working set of attention with one block's cache converted to f16."""
    if not item.heads or not table.rules.has_cache:
        return 0
    cells = geo.streams * (geo.window_cells if item.sliding else geo.cells)
    width = item.key_length if launch.type_k != "f16" else 0
    width += item.value_length if launch.type_v != "f16" and not table.latent else 0
    floats = item.heads * item.value_length + item.latent
    if table.rules.parallel_blocks:
        floats += item.feed_forward
    if table.rules.state == "delta":
        floats += 4 * item.heads * item.key_length
    return geo.token_bytes * floats + F16_BYTES * cells * item.kv_heads * width


def masks_of(table: ModelTable, sizes: GraphSizes, start: int, end: int) -> int:
    """Masks that the blocks from `start` to `end` read (M)."""
    if not table.rules.has_cache:
        return sizes.full_mask + sizes.window_mask
    sums = table.sums
    decays = sizes.decays if sizes.decays and sums.state_s[end] > sums.state_s[start] else 0
    full = sizes.full_mask if sums.uses_full[end] > sums.uses_full[start] else 0
    return decays + full + (sizes.window_mask if sums.uses_sliding[end] > sums.uses_sliding[start] else 0)


def working_bytes(table: ModelTable, sizes: GraphSizes, start: int, end: int, cpu_moe_blocks: int = 0) -> int:
    """Largest working set of the blocks from `start` to `end` (W), whose experts are elsewhere below
    `cpu_moe_blocks`."""
    largest = 0
    if start < end == table.trunk:
        end -= 1
        largest = sizes.last_block.host_experts if cpu_moe_blocks > end else sizes.last_block.own_experts
    middle = min(max(start, cpu_moe_blocks), end)
    for counts, block in zip(table.working_set_counts, sizes.blocks, strict=True):
        if block.host_experts > largest and counts[middle] > counts[start]:
            largest = block.host_experts
        if block.own_experts > largest and counts[end] > counts[middle]:
            largest = block.own_experts
    return largest
