"""The dimensions that a model's graph is built from, read from its header once."""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.planning.block_caches import BlockCache
from models_app.core.planning.model_keys import ModelKeys
from models_app.core.planning.replay.styles import STYLES


class BlockShape(NamedTuple):
    """One block. A width is 0 where the block has no such part."""

    heads: int
    kv_heads: int
    key_length: int
    value_length: int
    sliding: bool
    attends: bool
    owns: bool
    """It has a cache of its own."""
    recurrent: bool
    feed_forward: int
    gated: bool
    fused_gate: bool
    """Gate and up are one matrix."""
    expert_width: int
    expert_gated: bool
    shared_width: int


class MixerShape(NamedTuple):
    """The recurrent mixers of a model."""

    inner: int
    state: int
    groups: int
    heads: int
    """Of the second generation; the first has the rank of its time step here."""
    kernel: int


class RouterShape(NamedTuple):
    """How the weights of chosen experts are made."""

    normed: bool
    scaled: bool
    sigmoid: bool


class LatentShape(NamedTuple):
    """Attention over a compressed cache."""

    rank: int
    query_rank: int
    """0: queries are not compressed."""
    turned: int
    """Of a head's length, the part that has positions."""
    key_length: int
    value_length: int


class ModelShape(NamedTuple):
    """All that the graph of a model depends on, besides the launch."""

    architecture: str
    embedding: int
    vocabulary: int
    experts: int
    experts_used: int
    mixer: MixerShape
    router: RouterShape
    latent: LatentShape | None
    positions: bool
    """False where the file switches the positions of queries and keys off."""
    stacked_inputs: int
    """Further rows of the embedding's width in the input, each added by one of the first blocks."""
    block_input: int
    """Width of the input that every block gets."""
    scaled_queries: bool
    """By an input, according to how far into the context they are."""
    scaled_input: bool
    scaled_residual: bool
    scaled_logits: bool
    blocks: tuple[BlockShape, ...]


def _latent(model: ModelKeys) -> LatentShape:
    return LatentShape(
        rank=model.number("attention.kv_lora_rank"),
        query_rank=model.number("attention.q_lora_rank"),
        turned=model.number("rope.dimension_count"),
        key_length=model.number("attention.key_length_mla"),
        value_length=model.number("attention.value_length_mla"),
    )


SIGMOID = 2
"""Value of the key `expert_gating_func`."""
MOST_NODES = 40_000
"""Graphs that may grow beyond are not built: no model has them."""


def model_shape(model: ModelKeys, caches: tuple[BlockCache, ...]) -> ModelShape | None:
    """The shape of a model. None where its graph is not known, or dimensions that it needs are not."""
    header = model.header
    if header.architecture not in STYLES or not caches or len(header.weights.layers) < len(caches):
        return None
    shape = ModelShape(
        architecture=header.architecture,
        embedding=header.embedding_length,
        vocabulary=model.vocabulary,
        experts=header.expert_count,
        experts_used=header.expert_used,
        mixer=MixerShape(
            inner=header.ssm_inner_size,
            state=header.ssm_state_size,
            groups=model.number("ssm.group_count"),
            heads=model.number("ssm.time_step_rank"),
            kernel=header.ssm_conv_kernel or model.number("shortconv.l_cache"),
        ),
        router=RouterShape(
            normed=bool(header.extra.get("expert_weights_norm")),
            scaled=header.extra.get("expert_weights_scale") not in (None, 0.0, 1.0),
            sigmoid=model.number("expert_gating_func") == SIGMOID,
        ),
        latent=_latent(model) if model.latent else None,
        positions=header.extra.get("rope.scaling.finetuned") is not False,
        stacked_inputs=model.stacked_inputs,
        block_input=model.number("embedding_length_per_layer_input"),
        scaled_queries=bool(header.extra.get("attention.temperature_scale")),
        scaled_input=bool(header.extra.get("embedding_scale")),
        scaled_residual=bool(header.extra.get("residual_scale")),
        scaled_logits=bool(header.extra.get("logit_scale") or header.extra.get("final_logit_softcapping")),
        blocks=tuple(_block(model, index, cache) for index, cache in enumerate(caches)),
    )
    return shape if _is_sound(shape) else None


def _is_sound(shape: ModelShape) -> bool:
    """No dimension that the graph divides by, or counts with, is missing or absurd."""
    mixer, used = shape.mixer, shape.experts_used
    if any(block.expert_width for block in shape.blocks) and not 0 < used <= shape.experts:
        return False
    if len(shape.blocks) * (60 + 2 * used) > MOST_NODES:
        return False
    if any(block.attends and not (block.heads and block.kv_heads) for block in shape.blocks):
        return False
    shares = any(block.attends and not block.owns for block in shape.blocks)
    if shares and not (shape.architecture == "gemma4" and _own_both_kinds(shape.blocks)):
        return False
    style = STYLES[shape.architecture]
    kind = style.mixer
    if (shape.latent is not None) != style.latent or (shape.latent is not None and not all(shape.latent[2:5])):
        return False
    if not style.one_part and not all(block.attends or (block.recurrent and kind) for block in shape.blocks):
        return False
    if kind in ("mamba2", "delta") and (not mixer.groups or not mixer.heads or mixer.inner % mixer.heads):
        return False
    if kind == "delta" and mixer.heads % mixer.groups:
        return False
    return not kind or mixer.kernel > 0


def _own_both_kinds(blocks: tuple[BlockShape, ...]) -> bool:
    """Every block that shares a cache comes after one of its kind that has it."""
    owned = set[bool]()
    for block in blocks:
        if block.owns:
            owned.add(block.sliding)
        elif block.sliding not in owned:
            return False
    return True


def _block(model: ModelKeys, index: int, cache: BlockCache) -> BlockShape:
    key, value = model.head_lengths(cache.sliding)
    weights = model.weights(index)
    assert weights is not None
    return BlockShape(
        heads=model.heads(index),
        kv_heads=model.kv_heads(index),
        key_length=key,
        value_length=value,
        sliding=cache.sliding,
        attends=cache.attends,
        owns=cache.owns,
        recurrent=cache.state_r > 0 or cache.state_s > 0,
        feed_forward=weights.down_width,
        gated=weights.gated,
        fused_gate=weights.down_width > 0 and weights.feed_forward_width == 2 * weights.down_width,
        expert_width=weights.expert_width,
        expert_gated=weights.expert_gated,
        shared_width=weights.shared_expert_width,
    )
