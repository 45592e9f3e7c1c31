"""How the architectures whose graphs are known put them together; nothing but data."""

from __future__ import annotations

from typing import NamedTuple


class Router(NamedTuple):
    """How one architecture chooses experts."""

    normed: bool | None = True
    """The weights of the chosen ones are made to sum up to 1. None: where the file says so."""
    biased: bool = False
    """A bias is added for the choice alone."""
    chosen_first: bool = False
    """Weights are a softmax over the chosen ones, not over all."""
    weights_first: bool = False
    """Inputs of experts are weighted, not their results."""


class Style(NamedTuple):
    """One architecture; the defaults are those of llama."""

    mixer: str = ""
    """Of blocks that do not attend: `mamba`, `mamba2`, `convolution` or `delta`."""
    positions: str = "all"
    """Blocks whose queries and keys have positions: `all`, `sliding` or `none`."""
    positions_per_token: int = 1
    scaled_queries: bool = False
    """Queries without positions are multiplied by an input."""
    fused_attention: bool = False
    """Queries, keys and values come out of one product."""
    layer_norms: bool = False
    norms_before: bool = True
    norms_behind: bool = False
    """Norms of the results of attention and feed-forward."""
    expands_norms: bool = False
    """A block's norm is put into the graph before anything that reads it."""
    parallel: bool = False
    """Attention and feed-forward read the same."""
    residual_first: bool = False
    """Results are added to residuals, not the other way round, so residuals are written over first."""
    residual_first_last: bool = False
    """The same for feed-forwards alone."""
    one_part: bool = False
    """A block is attention, a mixer or a feed-forward, not two of them."""
    input_scale: str = ""
    """The input is multiplied: `whole`, or `rows` where that is done for tokens alone."""
    wanted_rows: str = "last block"
    """Where the rows that logits are wanted for are picked: also `before norm` and `behind norm`, the last one."""
    router: Router = Router()
    shared_gate: bool = False
    """The shared expert's result is weighted."""


_NORMS_AROUND = Style(norms_behind=True)
_LAYERED = Style(layer_norms=True)
_MAMBA = Style(mixer="mamba2", positions="none")
_DELTA = Style(mixer="delta", expands_norms=True, wanted_rows="behind norm", shared_gate=True)

STYLES: dict[str, Style] = {
    **dict.fromkeys(("llama", "qwen2", "qwen3", "granite", "granitemoe", "hunyuan-moe", "qwen3moe"), Style()),
    "qwen2moe": Style(router=Router(normed=False), shared_gate=True),
    "glm4moe": Style(router=Router(normed=None, biased=True)),
    "ernie4_5-moe": Style(router=Router(biased=True)),
    "phi3": Style(fused_attention=True, residual_first_last=True),
    "glm4": _NORMS_AROUND,
    "olmo2": Style(norms_before=False, norms_behind=True),
    "gemma2": _NORMS_AROUND._replace(input_scale="whole"),
    "gemma3": _NORMS_AROUND._replace(input_scale="rows"),
    "starcoder2": _LAYERED,
    "command-r": _LAYERED._replace(parallel=True),
    "cohere2": _LAYERED._replace(parallel=True, positions="sliding"),
    "gpt-oss": Style(router=Router(normed=False, chosen_first=True), wanted_rows="before norm"),
    "llama4": Style(positions="sliding", scaled_queries=True, router=Router(normed=False, weights_first=True)),
    "jamba": Style(mixer="mamba", positions="none", residual_first=True, router=Router(normed=False)),
    "granitehybrid": Style(mixer="mamba2"),
    "nemotron_h": _MAMBA._replace(one_part=True, wanted_rows="behind norm"),
    "nemotron_h_moe": _MAMBA._replace(
        one_part=True, wanted_rows="behind norm", router=Router(normed=None, biased=True)
    ),
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
