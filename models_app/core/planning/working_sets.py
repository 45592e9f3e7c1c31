"""What one block keeps alive at its peak, in floats per token (compute-buffer.md 4, "working set of one layer")."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from models_app.core.planning.block_caches import BlockCache
from models_app.core.planning.model_keys import ModelKeys


class ExpertShape(NamedTuple):
    """The experts of a model; `used` is 0 for a dense one."""

    used: int = 0
    width: int = 0
    shared_width: int = 0
    gated: bool = True


class WorkingSet(NamedTuple):
    """Floats per token of one block, one figure for each of its parts; the largest counts."""

    feed_forward: int = 0
    beside: int = 0
    """On top of the feed-forward, where attention without positions runs beside it."""
    beside_quantised: int = 0
    """The same for attention over a quantised cache."""
    projections: int = 0
    """Of a mixer that runs beside attention, 0 elsewhere. They and two rows separate what comes after from the room
    below, while what the mixer writes is not much wider than a row.
    """
    kept_result: int = 0
    """The result of attention beside such a mixer; 0 when it is narrower than a row, and so finds room."""
    beside_experts: int = 0
    """On top of the experts, where attention runs beside them."""
    experts: int = 0
    """Experts on the device of the block."""
    routed: int = 0
    """What stays of them there when they lie on the host."""
    attention: int = 0
    latent: int = 0
    mixer: int = 0
    attention_parts: tuple[int, ...] = ()
    """Of latent attention: the queries, their absorbed part, and both joined. Of attention with gates: queries joined
    with them, queries alone, and the result.
    """
    mixer_parts: tuple[int, ...] = ()
    """Of a mixer: its projections, its convolution's input and, where it comes on top of them, output, and what it
    writes.
    """
    mixer_state: int = 0
    """Floats per sequence, not per token."""
    mixer_heads: int = 0
    heads: int = 0
    key_length: int = 0
    value_length: int = 0
    kv_heads: int = 0
    sliding: bool = False
    recurrent: bool = False


def expert_shape(model: ModelKeys) -> ExpertShape:
    """Widths from the tensors where they are known, else from the keys."""
    header = model.header
    if header.expert_count <= 0:
        return ExpertShape()
    layers = [layer for layer in header.weights.layers[: model.trunk] if layer.expert_bytes]
    width = max((layer.expert_width for layer in layers), default=0)
    width = width or model.number("expert_feed_forward_length") or model.feed_forward(0)
    if layers:
        shared = max(layer.shared_expert_width for layer in layers)
        return ExpertShape(header.expert_used, width, shared, any(layer.expert_gated for layer in layers))
    shared = model.number("expert_shared_feed_forward_length") or model.number("expert_shared_count") * width
    return ExpertShape(header.expert_used, width, shared, model.rules.gated)


def working_sets(model: ModelKeys, caches: tuple[BlockCache, ...], experts: ExpertShape) -> tuple[WorkingSet, ...]:
    """The working sets of all blocks that run."""
    mixer = mixer_floats(model)
    slides = any(cache.sliding for cache in caches)
    widest_earlier = (0, *accumulate((model.feed_forward(index) for index in range(len(caches))), max))
    return tuple(
        _working_set(model, index, cache, experts, mixer, slides, widest)
        for index, (cache, widest) in enumerate(zip(caches, widest_earlier, strict=False))
    )


def _working_set(
    model: ModelKeys,
    index: int,
    cache: BlockCache,
    experts: ExpertShape,
    mixer: tuple[int, int],
    slides: bool,
    widest_earlier: int,
) -> WorkingSet:
    rules, embedding = model.rules, model.header.embedding_length
    recurrent = cache.state_r > 0 or cache.state_s > 0
    on_device, routed = _expert_floats(experts, embedding, scaled=rules.scaled_experts)
    if not _has_experts(model, index):
        on_device = routed = 0
    attends = cache.attends or not (rules.has_cache or rules.recurrent)
    key, value = model.head_lengths(cache.sliding)
    heads, kv_heads = (model.heads(index), model.kv_heads(index)) if attends else (0, 0)
    # In models with windows the full blocks have no positions; the last block computes the wanted rows alone.
    positionless = slides and not cache.sliding and index < model.trunk - 1
    work = _beside(model, heads * key, positionless)._replace(
        feed_forward=_feed_forward_floats(model, index) + _left_behind(model, index, widest_earlier),
        experts=on_device,
        routed=routed,
        attention=_attention_floats(model, heads, kv_heads, key, value) if not model.latent else 0,
        latent=_latent_floats(model, heads) if model.latent else 0,
        attention_parts=_attention_parts(model, heads) if heads else (),
        heads=heads,
        key_length=key,
        value_length=value,
        kv_heads=kv_heads,
        sliding=cache.sliding,
        recurrent=recurrent,
    )
    if not recurrent:
        return work
    floats, state = mixer
    return work._replace(
        mixer=floats, mixer_parts=_mixer_parts(model), mixer_state=state, mixer_heads=model.heads(index)
    )


def _beside(model: ModelKeys, queries: int, positionless: bool) -> WorkingSet:
    """What lies beside feed-forward or experts while attention or a mixer runs side by side with them."""
    rules, embedding = model.rules, model.header.embedding_length
    if rules.recurrent == "with-attention":
        return WorkingSet(
            projections=model.header.ssm_inner_size + mixer_input_width(model) + model.number("ssm.time_step_rank"),
            kept_result=queries if queries >= embedding else 0,
        )
    if not rules.parallel_blocks:
        return WorkingSet()
    # Queries before and after their positions are put in: experts are run before attention is.
    return WorkingSet(beside=embedding if positionless else 0, beside_quantised=embedding, beside_experts=2 * queries)


def _attention_floats(model: ModelKeys, heads: int, kv_heads: int, key: int, value: int) -> int:
    """Queries, keys, values and the result; beside delta-rule mixers also the queries' gates, and both still joined."""
    floats = (heads + kv_heads) * (key + value)
    return max(floats, 4 * heads * key) if model.rules.state == "delta" else floats


def _has_experts(model: ModelKeys, index: int) -> bool:
    weights = model.weights(index)
    if weights is not None:
        return weights.expert_bytes > 0
    step = max(1, model.number("interleave_moe_layer_step", 1))
    leading = model.number("leading_dense_block_count")
    return model.header.expert_count > 0 and index >= leading and (index + 1) % step == 0


def _feed_forward_floats(model: ModelKeys, index: int) -> int:
    """Gate, up and their product live together; without a gate there is only one of them."""
    if model.rules.state in ("wkv", "wkv6"):
        return 0
    weights = model.weights(index)
    if weights is not None:
        return (3 if weights.gated else 1) * weights.down_width
    if _has_experts(model, index):
        return 0
    return (3 if model.rules.gated else 1) * model.feed_forward(index)


def _left_behind(model: ModelKeys, index: int, widest_earlier: int) -> int:
    """Room that the feed-forward can't use. Where blocks get wider, gate, up and product of the wider one fill the room
    of the earlier three as far as they fit, and the rest of it stays empty.
    """
    room, width = 3 * widest_earlier, model.feed_forward(index)
    return room % width if 0 < room < 3 * width and not _has_experts(model, index) else 0


def _expert_floats(experts: ExpertShape, embedding: int, *, scaled: bool) -> tuple[int, int]:
    """With the experts on the device of the block, and with them on the host."""
    used, width = experts.used, experts.width
    shared = 3 * experts.shared_width + embedding if experts.shared_width else 0
    if experts.gated:
        # The result of the down projection takes the place of gate and up if it fits there.
        on_device = 3 * used * width + (used * embedding if embedding > 2 * width else 0)
    else:
        on_device = used * width + used * embedding + embedding
    if scaled:
        # Scaled rows lie beside gate and up, and the product takes their place if it is no wider.
        on_device = embedding + (3 if used * width > embedding else 2) * used * width
    return max(on_device, shared), max(used * embedding, shared)


def _latent_floats(model: ModelKeys, heads: int) -> int:
    """Attention over a compressed cache, in its absorbed form. Turned parts of queries narrower than a row find room
    below the masks; the result of a dense block whose product lay there does not.
    """
    rank, turned = model.number("attention.kv_lora_rank"), model.number("rope.dimension_count")
    embedding = model.header.embedding_length
    floats = heads * (model.number("attention.key_length_mla") + 2 * rank + turned)
    if heads * turned > embedding:
        floats += heads * turned
    narrow = not _has_experts(model, 0) and model.feed_forward(0) <= 2 * embedding
    return floats + (embedding if narrow else 0)


def _attention_parts(model: ModelKeys, heads: int) -> tuple[int, ...]:
    if model.latent:
        rank, turned = model.number("attention.kv_lora_rank"), model.number("rope.dimension_count")
        return heads * model.number("attention.key_length_mla"), heads * rank, heads * (rank + turned)
    if model.rules.state == "delta":
        queries = heads * model.header.key_length
        return 2 * queries, queries, queries
    return ()


def _mixer_parts(model: ModelKeys) -> tuple[int, ...]:
    """A convolution's input is a little wider than its output: it starts with the tail of what came before."""
    inner, width = model.header.ssm_inner_size, mixer_input_width(model)
    match model.rules.state:
        case "ssm":
            return inner + width + model.number("ssm.time_step_rank"), width + 1, width, inner
        case "delta":
            return width, width + 1, inner
        case _:
            return ()


def mixer_input_width(model: ModelKeys) -> int:
    """Width of what a state-space or delta-rule mixer convolves."""
    header = model.header
    return header.ssm_inner_size + 2 * model.number("ssm.group_count") * header.ssm_state_size


def mixer_floats(model: ModelKeys) -> tuple[int, int]:
    """A recurrent mixer: floats per token, and floats per sequence on top."""
    header = model.header
    embedding, inner, state = header.embedding_length, header.ssm_inner_size, header.ssm_state_size
    steps, rank = max(0, header.ssm_conv_kernel - 1), model.number("ssm.time_step_rank")
    width = mixer_input_width(model)
    match model.rules.state:
        case "conv":
            return 0, 0
        case "wkv6":
            return 11 * embedding, embedding * model.number("wkv.head_size")
        case "lightning":
            return 5 * header.head_count * header.key_length, 0
        case "wkv":
            return 15 * embedding, embedding * model.number("wkv.head_size")
        case "ssm1":
            return 4 * inner + 2 * rank + 2 * state, inner * state
        case "ssm":
            return inner + width + rank + 2 * width + inner, steps * width + inner * state
        case _:
            return 2 * width + inner, inner * state
