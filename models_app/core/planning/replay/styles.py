"""How the architectures whose graphs are known put them together; nothing but data."""

from __future__ import annotations

from typing import NamedTuple


class Router(NamedTuple):
    """How one architecture chooses experts."""

    normed: bool | None = True
    """The weights of the chosen ones are made to sum up to 1. None: where the file says so."""
    biased: bool | None = False
    """A bias is added for the choice alone. None: where scores are sigmoids."""
    chosen_first: bool = False
    """Weights are a softmax over the chosen ones, not over all."""
    scaled_results: bool = False
    """Every expert has a factor of its own."""
    weights_first: bool = False
    """Inputs of experts are weighted, not their results."""


class Style(NamedTuple):
    """One architecture; the defaults are those of llama."""

    mixer: str = ""
    """Of blocks that do not attend: `mamba`, `mamba2`, `convolution` or `delta`."""
    positions: str = "all"
    """Blocks whose queries and keys have positions: `all`, `sliding`, `all but fourths` or `all but firsts` of
    every four, `sliding or dense`, or `none`. `sliding`: all in a model without windows.
    """
    positions_per_token: int = 1
    scaled_queries: bool = False
    """Queries without positions are multiplied by an input."""
    latent: bool = False
    """Attention over a compressed cache."""
    query_norms: bool = False
    """Of heads of queries and keys, in blocks that may have no positions: elsewhere it does not show."""
    gated_attention: bool = False
    """The result of attention is weighted by a product of its own."""
    position_table: bool = False
    """Positions are rows that are added to the input."""
    input_norm: bool = False
    fused_attention: bool = False
    """Queries, keys and values come out of one product."""
    layer_norms: bool = False
    norms_before: bool = True
    norms_behind: bool = False
    """Norms of the results of attention and feed-forward."""
    expands_norms: bool = False
    """A block's norm is put into the graph before anything that reads it."""
    parallel: str = ""
    """Attention and feed-forward read the same. What the first of three is added to: the feed-forward to the `input`,
    attention to the `feed-forward`, or the feed-forward to `attention`.
    """
    residual_first: bool = False
    """Results are added to residuals, not the other way round, so residuals are written over first."""
    residual_first_last: bool = False
    """The same for feed-forwards alone."""
    one_part: bool = False
    """A block is attention, a mixer or a feed-forward, not two of them."""
    input_scale: str = ""
    """The input is multiplied: `whole`, or `rows` where that is done for tokens alone."""
    wanted_rows: str = "last block"
    """Where the rows that logits are wanted for are picked: also `behind part`, with the norm behind
    its attention, `before norm` and `behind norm`, the last one of the model.
    """
    router: Router = Router()
    shared_gate: bool = False
    """The shared expert's result is weighted."""


_PLAIN = """
apertus arcee baichuan ernie4_5 exaone granite granitemoe hunyuan-dense hunyuan-moe internlm2 llama mistral3 qwen2 qwen3
qwen3moe seed_oss
"""

_NORMS_AROUND = Style(norms_behind=True)
_LAYERED = Style(layer_norms=True)
_FUSED = Style(fused_attention=True)
_MAMBA = Style(mixer="mamba2", positions="none")
_NEMOTRON = _MAMBA._replace(one_part=True, wanted_rows="behind norm")
_DELTA = Style(mixer="delta", expands_norms=True, wanted_rows="behind norm", shared_gate=True)
_CHOSEN = Router(normed=None, biased=True)

STYLES: dict[str, Style] = {
    **dict.fromkeys(_PLAIN.split(), Style()),
    "gemma": Style(input_scale="whole"),
    **dict.fromkeys(("qwen2vl", "qwen3vl", "qwen3vlmoe"), Style(positions_per_token=4)),
    "smollm3": Style(positions="all but fourths"),
    "chatglm": _FUSED,
    # queries, keys and values in one, or feed-forwards that are added the other way round
    "phi3": _FUSED._replace(residual_first_last=True),
    "phimoe": Style(residual_first_last=True),
    # norms behind attention and feed-forward
    "glm4": _NORMS_AROUND,
    "olmo2": Style(norms_before=False, norms_behind=True),
    "exaone4": Style(norms_before=False, norms_behind=True, query_norms=True, positions="sliding"),
    "gemma2": _NORMS_AROUND._replace(input_scale="whole"),
    "gemma3": _NORMS_AROUND._replace(input_scale="rows"),
    "gemma4": Style(input_scale="rows", wanted_rows="behind norm", router=Router(scaled_results=True)),
    "plamo3": _NORMS_AROUND._replace(fused_attention=True),
    # norms that move the mean
    **dict.fromkeys(("starcoder2", "nemotron", "olmo", "orion", "stablelm"), _LAYERED),
    **dict.fromkeys(
        ("gpt2", "starcoder"), _LAYERED._replace(fused_attention=True, positions="none", position_table=True)
    ),
    "bloom": _LAYERED._replace(fused_attention=True, positions="none", input_norm=True),
    "mpt": _LAYERED._replace(fused_attention=True, positions="none"),
    "falcon": _LAYERED._replace(fused_attention=True, parallel="feed-forward"),
    "phi2": _LAYERED._replace(fused_attention=True, parallel="attention"),
    "command-r": _LAYERED._replace(parallel="input"),
    "cohere2": _LAYERED._replace(parallel="input", positions="sliding"),
    # experts
    **dict.fromkeys(("deepseek", "bailingmoe", "olmoe"), Style(router=Router(normed=False))),
    "qwen2moe": Style(router=Router(normed=False), shared_gate=True),
    "ernie4_5-moe": Style(router=Router(biased=True)),
    "minimax-m2": Style(router=Router(biased=True)),
    **dict.fromkeys(("glm4moe", "dots1"), Style(router=_CHOSEN)),
    "bailingmoe2": _FUSED._replace(router=_CHOSEN),
    "dbrx": _LAYERED._replace(fused_attention=True),
    "exaone-moe": Style(positions="sliding", query_norms=True, router=_CHOSEN),
    "afmoe": _NORMS_AROUND._replace(
        input_scale="whole",
        positions="all but fourths",
        query_norms=True,
        gated_attention=True,
        wanted_rows="behind part",
        router=_CHOSEN,
    ),
    "cohere2moe": _LAYERED._replace(
        parallel="input", positions="sliding or dense", wanted_rows="behind norm", router=Router(normed=None)
    ),
    "gpt-oss": Style(router=Router(normed=False, chosen_first=True), wanted_rows="before norm"),
    "llama4": Style(positions="all but fourths", scaled_queries=True, router=Router(normed=False, weights_first=True)),
    "deepseek2": Style(latent=True, router=Router(normed=None, biased=None)),
    # mixers
    "jamba": Style(mixer="mamba", positions="none", residual_first=True, router=Router(normed=False)),
    "granitehybrid": Style(mixer="mamba2"),
    "nemotron_h": _NEMOTRON,
    "nemotron_h_moe": _NEMOTRON._replace(router=_CHOSEN),
    "falcon-h1": Style(mixer="mamba2"),
    "mamba": _MAMBA._replace(mixer="mamba", one_part=True),
    "mamba2": _MAMBA._replace(one_part=True),
    "lfm2": Style(mixer="convolution", residual_first=True),
    "lfm2moe": Style(mixer="convolution", residual_first=True, router=Router(biased=True)),
    "qwen35": _DELTA._replace(positions_per_token=4),
    "qwen35moe": _DELTA._replace(positions_per_token=4),
    "qwen3next": _DELTA,
}
"""By the value of `general.architecture`."""


def picks_rows_early(architecture: str) -> bool:
    """The last block picks the rows that logits are wanted for before its feed-forward. False for an unknown one."""
    style = STYLES.get(architecture)
    return style is not None and style.wanted_rows in ("last block", "behind part")
