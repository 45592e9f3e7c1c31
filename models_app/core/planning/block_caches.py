"""Which cache each block of a model holds, and how wide it is (sizing.md 18.2 to 18.4, compute-buffer.md 2)."""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.planning.model_keys import ModelKeys

WINDOW_KEY = "attention.sliding_window"


class BlockCache(NamedTuple):
    """The cache of one block. Widths are elements per cell, states are floats per sequence."""

    attends: bool
    """Reads a K/V cache: its own, or that of an earlier block."""
    sliding: bool
    owns: bool
    k_width: int
    v_width: int
    state_r: int
    state_s: int

    @property
    def kind(self) -> str:
        """`none`, `full`, `sliding`, `shared`, `recurrent` or `both`."""
        recurrent = self.state_r > 0 or self.state_s > 0
        if not self.attends:
            return "recurrent" if recurrent else "none"
        if recurrent:
            return "both"
        if not self.owns:
            return "shared"
        return "sliding" if self.sliding else "full"


def block_caches(model: ModelKeys) -> tuple[BlockCache, ...]:
    """The caches of all blocks that run."""
    sliding = sliding_blocks(model)
    recurrent = recurrent_blocks(model)
    attends = attention_blocks(model, recurrent)
    owners = owning_blocks(model)
    states = state_floats(model) if any(recurrent) else (0, 0)
    caches = []
    for index in range(model.trunk):
        slides = attends[index] and sliding[index]
        owns = attends[index] and index < owners
        key, value = model.head_lengths(slides)
        heads = model.kv_heads(index) if owns else 0
        state_r, state_s = states if recurrent[index] else (0, 0)
        v_width = 0 if model.latent else heads * value
        caches.append(BlockCache(attends[index], slides, owns, heads * key, v_width, state_r, state_s))
    return tuple(caches)


def sliding_window(model: ModelKeys) -> int:
    """Tokens of the window, 0 when no block of this model slides."""
    rules, header = model.rules, model.header
    ignored = rules.period is None and not rules.array_only
    if ignored or rules.window_blocks not in (0, header.block_count):
        return 0
    wanted = header.sliding_window
    if wanted == 0 and not model.has(WINDOW_KEY):
        wanted = rules.default_window
    return rules.forced_window if wanted and rules.forced_window else wanted


def sliding_blocks(model: ModelKeys) -> list[bool]:
    """Which blocks slide. An array in the file is used as it stands; draft blocks never slide."""
    rules, header, trunk = model.rules, model.header, model.trunk
    if sliding_window(model) <= 0:
        return [False] * trunk
    if header.sliding_window_pattern_arr:
        pattern = [bool(value) for value in header.sliding_window_pattern_arr[:trunk]]
        return pattern + [False] * (trunk - len(pattern))
    if rules.period is None:
        return [False] * trunk
    period = header.sliding_window_pattern or rules.period
    if period == 0:
        return [True] * trunk
    if rules.dense_first:
        return [index % period != 0 for index in range(trunk)]
    return [index % period < period - 1 for index in range(trunk)]


def recurrent_blocks(model: ModelKeys) -> list[bool]:
    """Which blocks hold a recurrent state."""
    blocks = range(model.trunk)
    match model.rules.recurrent:
        case "all" | "with-attention":
            return [True for _ in blocks]
        case "no-kv-heads":
            return [model.kv_heads(index) == 0 for index in blocks]
        case "neither":
            return [model.kv_heads(index) == 0 and model.feed_forward(index) == 0 for index in blocks]
        case "interval":
            listed = model.array("attention.recurrent_layers")
            if listed:
                return [index < len(listed) and listed[index] > 0 for index in blocks]
            interval = model.header.full_attn_interval or model.rules.default_interval
            return [(index + 1) % interval != 0 for index in blocks]
        case _:
            return [False for _ in blocks]


def attention_blocks(model: ModelKeys, recurrent: list[bool]) -> list[bool]:
    """Which blocks read a K/V cache."""
    rules = model.rules
    if not rules.has_cache or rules.recurrent == "all":
        return [False] * len(recurrent)
    if rules.recurrent == "with-attention":
        return [True] * len(recurrent)
    return [
        not is_recurrent
        and model.kv_heads(index) > 0
        and not (rules.recurrent == "neither" and model.feed_forward(index) > 0)
        for index, is_recurrent in enumerate(recurrent)
    ]


def owning_blocks(model: ModelKeys) -> int:
    """So many blocks from the first have a cache of their own; the others reuse the last of its kind."""
    if model.rules.own_cache_layers:
        return model.rules.own_cache_layers
    if model.rules.shared_cache_key:
        return max(0, model.header.block_count - model.number("attention.shared_kv_layers"))
    return model.trunk


def state_floats(model: ModelKeys) -> tuple[int, int]:
    """R (the convolution's tail) and S (the state) of one recurrent block, floats per sequence."""
    header = model.header
    steps = max(0, header.ssm_conv_kernel - 1)
    match model.rules.state:
        case "conv":
            return header.embedding_length * max(0, model.number("shortconv.l_cache") - 1), 0
        case "wkv" | "wkv6":
            shifts = model.number("token_shift_count", 2)
            return shifts * header.embedding_length, header.embedding_length * model.number("wkv.head_size")
        case "kda":
            size = model.number("kda.head_dim")
            return 3 * steps * header.head_count * size, header.head_count * size**2
        case "lightning":
            return 0, header.key_length**2 * header.head_count
        case _:
            width = header.ssm_inner_size + 2 * model.number("ssm.group_count") * header.ssm_state_size
            return steps * width, header.ssm_state_size * header.ssm_inner_size
