"""What llama.cpp's code decides per architecture, where the file's keys don't say it (sizing.md 18.2 to 18.4).

Version-bound, and nothing but data: a new architecture is a row here. An architecture without a row is planned as
plain grouped-query attention over all layers, and the projection says "approximate".
"""

from __future__ import annotations

from dataclasses import dataclass

ALL_SLIDE = 0
"""As a period: every attention layer slides."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The rules of one architecture; the defaults are those of a plain decoder."""

    period: int | None = None
    """Layer i slides when i mod period < period - 1. None: the key `attention.sliding_window` is ignored."""
    dense_first: bool = False
    """The full layer is the first of each period, not the last."""
    array_only: bool = False
    """Slides only where `attention.sliding_window_pattern` is an array."""
    default_window: int = 0
    """Window when the key is missing."""
    forced_window: int = 0
    """Window whatever the key says; a key that is present and 0 switches sliding off."""
    window_blocks: int = 0
    """Slides only in the model with this many blocks; 0: in all."""
    recurrent: str = ""
    """Which layers are recurrent: `interval`, `no-kv-heads`, `neither`, `with-attention`, `all`, or "" for none."""
    default_interval: int = 4
    """`full_attention_interval` when the key is missing (`interval` only)."""
    state: str = "ssm"
    """Shape of the recurrent state and of its mixer: `ssm`, `ssm1` (first generation), `delta`, `conv`, `wkv`, `kda`,
    `lightning`, `wkv6` and `wkv`: sixth and seventh generation."""
    own_cache_layers: int = 0
    """So many layers hold a cache, whatever the file says; the others reuse one of theirs."""
    shared_cache_key: bool = False
    """The last `attention.shared_kv_layers` blocks reuse a cache."""
    has_cache: bool = True
    causal: bool = True
    """False: an encoder. It has no logits, and its mask is a square over the tokens of a micro-batch."""
    tied_output: bool = True
    """Without `output.weight`, the embedding is loaded a second time as the output matrix."""
    tied_on_host: bool = False
    """... even when both copies lie on the host."""
    parallel_blocks: bool = False
    """Attention and feed-forward read the same input side by side."""
    late_logits: bool = False
    """On a device behind another, the logits find one row of activations and the mask in their way."""
    result_on_top: bool = False
    """The result of attention lies on top of the masks, not in the room below them."""
    boundary_rows: int = 2
    """Rows beside a dense block on a device behind another."""
    scattered_rows: bool = False
    """Where the last row before the logits lies depends on the mask's size."""
    shared_gate: bool = False
    """The shared expert's result is weighted by a gate, which keeps the routed ones' results alive."""
    late_norms: bool = False
    """Norms come behind attention and feed-forward, none before."""
    gated: bool = True
    """The feed-forward has a gate, for a header whose tensors are not known."""
    flash: bool = True
    """False: the graph has no flash attention, whatever the launch says."""
    stacked_inputs: bool = False
    """The embedding is padded for `n_deepstack_layers` more rows of image features, which early blocks add."""
    scaled_experts: bool = False
    """Expert weights are applied before the experts, which keeps one more activation alive."""
    alternating_updates: bool = False
    """Several streams of activations at once (gemma3n): the compute buffer follows its own rules."""
    rope_on_full_layers: bool = False
    """Only full-attention layers read the RoPE factors."""
    input_norm_is_output: bool = False
    """The tensor named `token_embd_norm` is the output norm."""
    unverified: str = ""
    """Part of the cache that is known from reading only, if any; the projection is then approximate."""


_PLAIN_NAMES = """
apertus arcee arctic baichuan bailingmoe bailingmoe2 bitnet chameleon chatglm cogvlm dbrx deci deepseek deepseek2
deepseek2-ocr ernie4_5 ernie4_5-moe exaone gemma glm4 glm4moe granite granitemoe grovemoe hunyuan-dense
hunyuan_vl hy_v3 internlm2 llama maincoder minicpm minimax-m2 mistral3 mistral4 olmo olmoe
openelm orion paddleocr pangu-embedded phimoe plamo plm qwen qwen2 qwen2vl qwen3 qwen3moe refact
seed_oss stablelm talkie xverse
"""

_UNGATED_NAMES = "bloom codeshell gpt2 gptj gptneox jais jais2 mpt nemotron phi2 starcoder starcoder2"

_ENCODER_NAMES = "bert eurobert jina-bert-v2 jina-bert-v3 neo-bert nomic-bert nomic-bert-moe t5encoder"

_DIFFUSION_NAMES = "dream llada llada-moe rnd1"

_UNREAD_NAMES = "clef eagle3 graniteswitch pockettts qwen3tts wavtokenizer-dec"

_DELTA = Architecture(recurrent="interval", state="delta", scattered_rows=True)
_INDEXER = Architecture(unverified="the indexer's cache")

ARCHITECTURES: dict[str, Architecture] = {
    **{name: Architecture() for name in _PLAIN_NAMES.split()},
    **{name: Architecture(gated=False) for name in _UNGATED_NAMES.split()},
    **{name: Architecture(has_cache=False, causal=False, tied_output=False) for name in _ENCODER_NAMES.split()},
    **{name: Architecture(has_cache=False) for name in _DIFFUSION_NAMES.split()},
    # windows in some layers
    "gemma2": Architecture(period=2, default_window=4096, scattered_rows=True),
    "gpt-oss": Architecture(period=2),
    "cohere2": Architecture(period=4, parallel_blocks=True, scattered_rows=True),
    "olmo2": Architecture(period=4, late_norms=True),
    "afmoe": Architecture(period=4, result_on_top=True, shared_gate=True),
    "mellum": Architecture(period=4),
    "muse-glimmer": Architecture(period=4),
    "exaone-moe": Architecture(period=4, default_window=128),
    "exaone4": Architecture(period=4, late_norms=True, default_window=4096, window_blocks=64),
    "llama4": Architecture(period=4, default_window=8192, forced_window=8192, scaled_experts=True),
    "gemma3": Architecture(period=6),
    "gemma3n": Architecture(period=5, own_cache_layers=20, tied_on_host=True, alternating_updates=True),
    "gemma4": Architecture(array_only=True, shared_cache_key=True, tied_on_host=True, rope_on_full_layers=True),
    "plamo3": Architecture(period=8),
    "cohere2moe": Architecture(period=4, dense_first=True, parallel_blocks=True),
    "laguna": Architecture(period=4, dense_first=True),
    "smallthinker": Architecture(period=4, dense_first=True, forced_window=4096, result_on_top=True),
    "granite_swa": Architecture(array_only=True),
    "maple": Architecture(array_only=True),
    "mimo2": Architecture(array_only=True),
    "spark2_5": Architecture(array_only=True),
    "step35": Architecture(array_only=True),
    "dots3note": Architecture(array_only=True),
    "dflash": Architecture(array_only=True),
    "gemma4-assistant": Architecture(array_only=True, has_cache=False),
    # attention and feed-forward side by side, without a gate
    "falcon": Architecture(gated=False, result_on_top=True),
    # one more row across a boundary
    "minicpm3": Architecture(boundary_rows=3),
    "smollm3": Architecture(boundary_rows=3),
    # a shared expert behind the routed ones
    "dots1": Architecture(scattered_rows=True),
    "hunyuan-moe": Architecture(scattered_rows=True),
    "qwen2moe": Architecture(shared_gate=True),
    # a little more before the logits
    "phi3": Architecture(late_logits=True),
    # more rows at the input
    "qwen3vl": Architecture(stacked_inputs=True),
    "qwen3vlmoe": Architecture(stacked_inputs=True),
    # attention without the flash kernel
    "grok": Architecture(flash=False),
    # attention and feed-forward side by side
    "command-r": Architecture(parallel_blocks=True),
    # encoders with windows
    "gemma-embedding": Architecture(period=6, has_cache=False, causal=False),
    "modern-bert": Architecture(period=3, dense_first=True, has_cache=False, causal=False, tied_output=False),
    # recurrent layers between attention layers
    "qwen3next": Architecture(recurrent="interval", state="delta"),
    "qwen35": _DELTA,
    "qwen35moe": _DELTA,
    "granitehybrid": Architecture(recurrent="no-kv-heads", scattered_rows=True),
    "plamo2": Architecture(recurrent="no-kv-heads", result_on_top=True),
    "jamba": Architecture(recurrent="no-kv-heads", state="ssm1"),
    "lfm2": Architecture(recurrent="no-kv-heads", state="conv", period=ALL_SLIDE, input_norm_is_output=True),
    "lfm2moe": Architecture(recurrent="no-kv-heads", state="conv", input_norm_is_output=True),
    "nemotron_h": Architecture(recurrent="neither", gated=False),
    "nemotron_h_moe": Architecture(recurrent="neither", gated=False),
    "falcon-h1": Architecture(recurrent="with-attention", scattered_rows=True),
    "kimi-linear": Architecture(recurrent="no-kv-heads", state="kda", scattered_rows=True),
    "minimax-01": Architecture(recurrent="interval", default_interval=8, state="lightning"),
    # no attention at all
    "mamba": Architecture(recurrent="all", state="ssm1"),
    "mamba2": Architecture(recurrent="all", scattered_rows=True),
    "rwkv6": Architecture(recurrent="all", state="wkv6"),
    "rwkv6qwen2": Architecture(recurrent="all", state="wkv6"),
    "rwkv7": Architecture(recurrent="all", state="wkv"),
    "arwkv7": Architecture(recurrent="all", state="wkv"),
    # known from reading only
    "kimi-k3": Architecture(recurrent="no-kv-heads", state="kda", unverified="the state of its linear attention"),
    "qwen4exp": Architecture(recurrent="interval", state="delta", unverified="the indexer's cache"),
    "bailingmoe3": Architecture(recurrent="no-kv-heads", unverified="the recurrent state"),
    "glm5-next": Architecture(recurrent="no-kv-heads", unverified="the indexer's cache and the recurrent state"),
    "deepseek32": _INDEXER,
    "glm-dsa": _INDEXER,
    "hy_v4": _INDEXER,
    "minimax-m3": _INDEXER,
    "deepseek4": Architecture(unverified="the compressed caches"),
    **{name: Architecture(unverified="the graph") for name in _UNREAD_NAMES.split()},
    "hrm_text": Architecture(unverified="the layers that it passes more than once"),
    "llama-embed": Architecture(causal=False, unverified="the cache of its encoder"),
    "nanbeige": Architecture(unverified="the layers that it passes more than once"),
    "t5": Architecture(flash=False, unverified="the cross-attention of its encoder"),
    "t5encoder": Architecture(flash=False, unverified="the bias on its attention scores"),
}
"""Rules by the value of `general.architecture`."""

UNKNOWN = Architecture()
"""What an architecture without a row is taken for: llama.cpp itself ignores window keys that it does not know."""
