"""One table per model, built once from its header: all that `project` needs (compute-buffer.md, sizing.md 19.1)."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.planning.architectures import ARCHITECTURES
from models_app.core.planning.block_caches import block_caches, sliding_window
from models_app.core.planning.coarse import MAX_BLOCKS, MAX_EXPERTS, MAX_WIDTH, coarse_table
from models_app.core.planning.drafters import MTP, rollback_snapshots
from models_app.core.planning.model_facts import ModelTable, Sums, block_sums, running, trunk_weights
from models_app.core.planning.model_keys import ModelKeys
from models_app.core.planning.replay.shapes import model_shape
from models_app.core.planning.weight_placement import global_weights
from models_app.core.planning.working_sets import WorkingSet, expert_shape, mixer_input_width, working_sets

__all__ = ["ModelTable", "missing_facts", "model_table"]


def model_table(header: Header) -> ModelTable:
    """The table of a model. Never fails: a header that lacks what the exact rules need gets the engine `classic`."""
    missing = missing_facts(header)
    if missing:
        return coarse_table(header, missing)
    model = ModelKeys.of(header)
    caches = block_caches(model)
    experts = expert_shape(model)
    layers = trunk_weights(header, model.trunk)
    different, counts, last_set = _distinct(working_sets(model, caches, experts))
    warnings = _warnings(header, model)
    return ModelTable(
        architecture=header.architecture,
        engine="approximate" if warnings else "exact",
        warnings=warnings,
        rules=model.rules,
        blocks=header.block_count,
        trunk=model.trunk,
        embedding=header.embedding_length,
        vocabulary=model.vocabulary,
        per_block_inputs=header.block_count * model.number("embedding_length_per_layer_input"),
        stacked_inputs=model.stacked_inputs,
        trained_tokens=header.context_length,
        window=sliding_window(model),
        latent=model.latent,
        rolls_back=rollback_snapshots(header.architecture, MTP, 1) > 0,
        experts=experts,
        mixer_input=mixer_input_width(model),
        caches=caches,
        layers=layers,
        sums=block_sums(caches, layers, model.rules),
        v_width_largest=max((cache.v_width for cache in caches), default=0),
        working_sets=different,
        working_set_counts=counts,
        last_set=last_set,
        globals=global_weights(header.weights.globals, model.rules),
        nextn_bytes=sum(layer.other_bytes + layer.expert_bytes for layer in header.weights.layers[model.trunk :]),
        file_size_bytes=header.file_size_bytes,
        shape=model_shape(model, caches),
        compressed_queries=model.latent and model.number("attention.q_lora_rank") > 0,
    )


def missing_facts(header: Header) -> str:
    """What keeps the exact rules from being applied, "" when nothing does."""
    if not 0 < header.block_count <= MAX_BLOCKS:
        return f"block_count is {header.block_count}" if header.block_count else "block_count is missing"
    if not 0 < header.embedding_length <= MAX_WIDTH:
        return "embedding_length is missing or absurd"
    if header.nextn_layers >= header.block_count:
        return "every block is a draft block"
    model = ModelKeys.of(header)
    if model.rules.recurrent == "all":
        return ""
    widths = (header.head_count, header.key_length, header.value_length)
    if not all(0 < width <= MAX_WIDTH for width in widths):
        return "the head counts or head lengths are missing"
    return _absurd(model) or ("" if any(map(model.kv_heads, range(model.trunk))) else "no block has a key-value head")


def _absurd(model: ModelKeys) -> str:
    """The first count that no model has: figures made from it would be made up."""
    header, blocks = model.header, range(model.trunk)
    if max(header.head_count, *map(model.kv_heads, blocks)) * max(header.key_length, header.value_length) > MAX_WIDTH:
        return "a head count is absurd"
    if max(map(model.feed_forward, blocks)) > MAX_WIDTH or model.number("expert_feed_forward_length") > MAX_WIDTH:
        return "feed_forward_length is absurd"
    if max(header.expert_count, header.expert_used) > MAX_EXPERTS:
        return "expert_count is absurd"
    return ""


def _distinct(sets: tuple[WorkingSet, ...]) -> tuple[tuple[WorkingSet, ...], tuple[Sums, ...], int]:
    """The different ones, running counts of the blocks that have each, and which of them the last block has."""
    different = tuple(dict.fromkeys(sets))
    counts = tuple(running(item == wanted for item in sets) for wanted in different)
    return different, counts, different.index(sets[-1])


def _warnings(header: Header, model: ModelKeys) -> tuple[str, ...]:
    """Why the figures of this model are approximate, if they are."""
    texts = []
    name = header.architecture or "(none)"
    if header.architecture not in ARCHITECTURES:
        texts.append(f"approximate: architecture {name} is not known here, planned as plain grouped-query attention")
    elif model.rules.unverified:
        texts.append(f"approximate: {model.rules.unverified} of {name} was never checked against llama.cpp")
    if not header.weights.complete:
        texts.append("approximate: some tensors have a type of unknown size and are not counted")
    return tuple(texts)
