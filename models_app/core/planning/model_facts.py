"""What is known of one model, for any launch of it.

A device holds consecutive blocks, so every per-block quantity is kept as running sums: blocks a to b are one
subtraction. Blocks with the same working set share one entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from models_app.core.catalog import Header, LayerWeights
from models_app.core.planning.architectures import Architecture
from models_app.core.planning.block_caches import BlockCache
from models_app.core.planning.replay.shapes import ModelShape
from models_app.core.planning.replay.styles import picks_rows_early
from models_app.core.planning.weight_placement import GlobalWeights
from models_app.core.planning.working_sets import ExpertShape, WorkingSet

Sums = tuple[int, ...]
"""Running sums: entry i is the sum over the blocks before block i."""


@dataclass(frozen=True, slots=True)
class BlockSums:
    """Running sums over the blocks that run."""

    k_full: Sums
    v_full: Sums
    k_sliding: Sums
    v_sliding: Sums
    owns_full: Sums
    owns_sliding: Sums
    uses_full: Sums
    uses_sliding: Sums
    state_r: Sums
    state_s: Sums
    other_bytes: Sums
    expert_bytes: Sums
    reads_rope: Sums


@dataclass(frozen=True, slots=True)
class ModelTable:
    """Facts of one model for any launch. `engine` says how far they can be trusted."""

    architecture: str
    engine: str
    """`exact`, `approximate` or `classic`."""
    warnings: tuple[str, ...]
    rules: Architecture
    blocks: int
    """`block_count`, draft blocks included: what `-ngl` counts, less the output."""
    trunk: int
    """Blocks that are loaded and run."""
    embedding: int
    vocabulary: int
    per_block_inputs: int
    """Elements per token of the per-layer inputs of all blocks together (gemma3n, gemma4)."""
    stacked_inputs: int
    """Further rows of the embedding's width that the input has for every token (images of qwen3vl)."""
    trained_tokens: int
    window: int
    """Sliding window in tokens, 0 when no block slides."""
    latent: bool
    rolls_back: bool
    """Keeps copies of its recurrent state while drafting."""
    experts: ExpertShape
    mixer_input: int
    """Width of the convolved input of a recurrent mixer."""
    caches: tuple[BlockCache, ...]
    layers: tuple[LayerWeights, ...]
    sums: BlockSums
    v_width_largest: int
    """Without flash attention every V is stored as wide as the widest."""
    working_sets: tuple[WorkingSet, ...]
    """The different ones."""
    working_set_counts: tuple[Sums, ...]
    """For each of them, running counts of the blocks that have it."""
    globals: GlobalWeights
    nextn_bytes: int
    """Draft blocks; not loaded unless a launch drafts with them."""
    file_size_bytes: int
    compressed_queries: bool = False
    """Beside a compressed cache, the queries too come out of a narrow row."""
    last_set: int = 0
    """Of the working sets, the one that the last block has."""
    shape: ModelShape | None = None
    """What its graph is built from; None where llama.cpp's work can't be played again."""
    least_compute_bytes: int = 0
    """Flat compute buffer of a device, where the model's dimensions are not known."""
    missing: str = ""
    """What the header lacks, in words: no plan of such a model can be judged. "" for every engine but `classic`."""

    @property
    def is_moe(self) -> bool:
        return self.sums.expert_bytes[-1] > 0

    @property
    def picks_rows_early(self) -> bool:
        """Behind attention the last block goes on with the rows that logits are wanted for; False also where it is not
        known to.
        """
        return picks_rows_early(self.architecture)

    @property
    def mixer_inner(self) -> int:
        """Width of what a recurrent mixer writes."""
        return next((item.mixer_parts[-1] for item in self.working_sets if item.mixer_parts), self.mixer_input)

    @property
    def is_recurrent(self) -> bool:
        return self.sums.state_r[-1] > 0 or self.sums.state_s[-1] > 0

    @property
    def expert_blocks(self) -> tuple[int, ...]:
        """Blocks with experts: the only ones for which `--n-cpu-moe` changes anything."""
        sums = self.sums.expert_bytes
        return tuple(index for index in range(self.trunk) if sums[index + 1] > sums[index])


def trunk_weights(header: Header, trunk: int) -> tuple[LayerWeights, ...]:
    """Weights of the blocks that run; blocks without tensors weigh nothing."""
    known = header.weights.layers[:trunk]
    return known + (LayerWeights(),) * (trunk - len(known))


def block_sums(caches: tuple[BlockCache, ...], layers: tuple[LayerWeights, ...], rules: Architecture) -> BlockSums:
    """Running sums over blocks."""
    full = [cache.attends and not cache.sliding for cache in caches]
    return BlockSums(
        k_full=running(0 if cache.sliding else cache.k_width for cache in caches),
        v_full=running(0 if cache.sliding else cache.v_width for cache in caches),
        k_sliding=running(cache.k_width if cache.sliding else 0 for cache in caches),
        v_sliding=running(cache.v_width if cache.sliding else 0 for cache in caches),
        owns_full=running(cache.owns and not cache.sliding for cache in caches),
        owns_sliding=running(cache.owns and cache.sliding for cache in caches),
        uses_full=running(full),
        uses_sliding=running(cache.sliding for cache in caches),
        state_r=running(cache.state_r for cache in caches),
        state_s=running(cache.state_s for cache in caches),
        other_bytes=running(layer.other_bytes for layer in layers),
        expert_bytes=running(layer.expert_bytes for layer in layers),
        reads_rope=running(full if rules.rope_on_full_layers else [True] * len(caches)),
    )


def running(values: Iterable[int]) -> Sums:
    """Sums over the first 0, 1, 2, ... values."""
    return tuple(accumulate(values, initial=0))
