"""A table for a header that lacks what the exact rules need: the engine `classic`.

Bytes are spread evenly where the tensors are not known, a cache is counted where its widths are, and nothing is made
up beyond that; the warnings say what is missing.
"""

from __future__ import annotations

from models_app.core.catalog import Header, LayerWeights
from models_app.core.planning.architectures import UNKNOWN
from models_app.core.planning.block_caches import BlockCache
from models_app.core.planning.model_facts import ModelTable, block_sums, trunk_weights
from models_app.core.planning.model_keys import ModelKeys
from models_app.core.planning.weight_placement import GlobalWeights, global_weights
from models_app.core.planning.working_sets import ExpertShape, WorkingSet
from models_app.core.units import GIB

MAX_BLOCKS = 1024
"""llama.cpp loads 512; a header that says more than this is broken."""
MAX_WIDTH = 1 << 24
MAX_EXPERTS = 1 << 12
"""llama.cpp loads 512."""
FLAT_COMPUTE_BYTES = int(0.17 * GIB)
"""Compute buffer of a model without dimensions (sizing.md 6.2)."""


def coarse_table(header: Header, missing: str) -> ModelTable:
    """The table of a model about which `missing` is not known."""
    model = ModelKeys(header, UNKNOWN)
    blocks = header.block_count if 0 < header.block_count <= MAX_BLOCKS else 0
    trunk = blocks - header.nextn_layers if header.nextn_layers < blocks else blocks
    caches = tuple(_cache(model, index) for index in range(trunk))
    layers, parts, nextn = _weights(header, blocks, trunk)
    embedding = header.embedding_length if header.embedding_length <= MAX_WIDTH else 0
    feed_forward = 3 * max((model.feed_forward(index) for index in range(trunk)), default=0)
    warnings = [f"classic: {missing}, so bytes are spread evenly and the compute buffer is a rough guess"]
    if not any(cache.owns for cache in caches):
        warnings.append("classic: the size of the context is not known and counts as 0")
    return ModelTable(
        architecture=header.architecture,
        engine="classic",
        warnings=tuple(warnings),
        rules=UNKNOWN,
        blocks=blocks,
        trunk=trunk,
        embedding=embedding,
        vocabulary=model.vocabulary,
        per_block_inputs=0,
        stacked_inputs=0,
        trained_tokens=header.context_length,
        window=0,
        latent=False,
        rolls_back=False,
        experts=ExpertShape(),
        mixer_input=0,
        caches=caches,
        layers=layers,
        sums=block_sums(caches, layers, UNKNOWN),
        v_width_largest=max((cache.v_width for cache in caches), default=0),
        working_sets=(WorkingSet(feed_forward=min(feed_forward, MAX_WIDTH)),),
        working_set_counts=(tuple(range(trunk + 1)),),
        globals=parts,
        nextn_bytes=nextn,
        file_size_bytes=header.file_size_bytes,
        least_compute_bytes=0 if embedding and model.vocabulary else FLAT_COMPUTE_BYTES,
        missing=missing,
    )


def _cache(model: ModelKeys, index: int) -> BlockCache:
    """Plain attention, where heads and lengths are known."""
    key, value = model.head_lengths(sliding=False)
    heads = model.kv_heads(index)
    known = all(0 < width <= MAX_WIDTH for width in (heads, key, value))
    return BlockCache(known, False, known, heads * key if known else 0, heads * value if known else 0, 0, 0)


def _weights(header: Header, blocks: int, trunk: int) -> tuple[tuple[LayerWeights, ...], GlobalWeights, int]:
    """The weights by tensor where they are known, else the bytes of the file in equal parts for blocks and output."""
    if header.weights.layers and header.weights.complete and len(header.weights.layers) <= blocks:
        draft = sum(layer.other_bytes + layer.expert_bytes for layer in header.weights.layers[trunk:])
        return trunk_weights(header, trunk), global_weights(header.weights.globals, UNKNOWN), draft
    part = header.file_size_bytes // (blocks + 1)
    share = int(part * header.expert_weight_share)
    layer = LayerWeights(other_bytes=part - share, expert_bytes=share, largest_tensor_bytes=part)
    output = header.file_size_bytes - part * blocks
    return (layer,) * trunk, GlobalWeights(output=output), part * (blocks - trunk)
