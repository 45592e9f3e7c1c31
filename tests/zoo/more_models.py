"""Further model headers, beside those of `zoo`: what `tests/data/llama_truth_more.json` was measured with.

    more_models.write("gemma2-9b", folder)      # -> path of the file
    for name, model in more_models.MODELS.items(): ...

The hyperparameters are those of the published models. A vocabulary is only a number here (tokenizer model "none"): no
memory depends on its words, and the files are written and read in a moment.
"""

from __future__ import annotations

from pathlib import Path

from tests.zoo import zoo
from tests.zoo.decoders import (
    BIASED,
    GEMMA,
    GPT_STYLE,
    HEAD_NORMS,
    POST_NORMS,
    TIED,
    TIED_HEAD_NORMS,
    Experts,
    Model,
    Shape,
    Style,
    begin,
    decoder,
)
from tests.zoo.mixed_models import MIXED
from tests.zoo.zoo import Header


def _llama(shape: Shape, words: int = 128256, ctx: int = 131072, *, tied: bool = False, freqs: int = 0) -> Header:
    return decoder("llama", shape, words=words, ctx=ctx, style=Style(tied=tied), rope_freqs=freqs)


def _qwen2(shape: Shape, words: int = 152064, *, tied: bool = False) -> Header:
    return decoder("qwen2", shape, words=words, ctx=32768, style=Style(bias=True, tied=tied))


def _qwen3(shape: Shape, *, tied: bool = False, arch: str = "qwen3", **keys: object) -> Header:
    return decoder(arch, shape, words=151936, ctx=40960, style=Style(qk_norm="head", tied=tied), **keys)


def _qwen3moe(shape: Shape, experts: Experts, **keys: object) -> Header:
    return decoder("qwen3moe", shape, words=151936, ctx=40960, style=HEAD_NORMS, experts=experts, **keys)


def _gemma2(shape: Shape) -> Header:
    style = Style(tied=True, more=POST_NORMS)
    return decoder("gemma2", shape, words=256000, ctx=8192, style=style, attention__sliding_window=4096)


def _gemma3(shape: Shape, window: int = 1024, ctx: int = 131072, arch: str = "gemma3", **keys: object) -> Header:
    return decoder(arch, shape, words=262144, ctx=ctx, style=GEMMA, attention__sliding_window=window, **keys)


PLAIN: dict[str, Model] = {
    "llama32-3b": Model("plain", lambda: _llama(Shape(28, 3072, 24, 8, 128, 8192), tied=True, freqs=64)),
    "llama2-7b": Model("plain", lambda: _llama(Shape(32, 4096, 32, 32, 128, 11008), 32000, 4096), "q4_0"),
    "llama2-13b": Model("plain", lambda: _llama(Shape(40, 5120, 40, 40, 128, 13824), 32000, 4096), "q5_k_m"),
    "mistral-7b": Model("plain", lambda: _llama(Shape(32, 4096, 32, 8, 128, 14336), 32768, 32768)),
    "mistral-nemo-12b": Model("plain", lambda: _llama(Shape(40, 5120, 32, 8, 128, 14336), 131072)),
    "mistral-large-123b": Model("plain", lambda: _llama(Shape(88, 12288, 96, 8, 128, 28672), 32768), "iq4_xs"),
    "ministral-8b": Model("plain", lambda: _llama(Shape(36, 4096, 32, 8, 128, 12288), 131072, 32768), "q6_k"),
    "tinyllama-1.1b": Model("plain", lambda: _llama(Shape(22, 2048, 32, 4, 64, 5632), 32000, 2048), "q8_0"),
    "smollm2-135m": Model("plain", lambda: _llama(Shape(30, 576, 9, 3, 64, 1536), 49152, 8192, tied=True), "f16"),
    "yi-34b": Model("plain", lambda: _llama(Shape(60, 7168, 56, 8, 128, 20480), 64000, 4096)),
    "llama31-405b": Model("plain", lambda: _llama(Shape(126, 16384, 128, 8, 128, 53248), freqs=64), "ud_q2"),
    "qwen25-1.5b": Model("plain", lambda: _qwen2(Shape(28, 1536, 12, 2, 128, 8960), 151936, tied=True)),
    "qwen25-3b": Model("plain", lambda: _qwen2(Shape(36, 2048, 16, 2, 128, 11008), 151936, tied=True)),
    "qwen25-7b": Model("plain", lambda: _qwen2(Shape(28, 3584, 28, 4, 128, 18944))),
    "qwen25-14b": Model("plain", lambda: _qwen2(Shape(48, 5120, 40, 8, 128, 13824)), "q5_k_m"),
    "qwen25-72b": Model("plain", lambda: _qwen2(Shape(80, 8192, 64, 8, 128, 29568))),
    "qwen3-1.7b": Model("plain", lambda: _qwen3(Shape(28, 2048, 16, 8, 128, 6144), tied=True), "q8_0"),
    "qwen3-4b": Model("plain", lambda: _qwen3(Shape(36, 2560, 32, 8, 128, 9728), tied=True)),
    "qwen3-14b": Model("plain", lambda: _qwen3(Shape(40, 5120, 40, 8, 128, 17408))),
    "qwen3-32b": Model("plain", lambda: _qwen3(Shape(64, 5120, 64, 8, 128, 25600)), "iq4_xs"),
    "qwen3-vl-8b": Model(
        "plain",
        lambda: _qwen3(
            Shape(36, 4096, 32, 8, 128, 12288),
            arch="qwen3vl",
            rope__dimension_sections=[24, 20, 20, 0],
            n_deepstack_layers=3,
        ),
    ),
    "qwen2-vl-7b": Model(
        "plain",
        lambda: decoder(
            "qwen2vl",
            Shape(28, 3584, 28, 4, 128, 18944),
            words=152064,
            ctx=32768,
            style=BIASED,
            rope__dimension_sections=[16, 24, 24, 0],
        ),
    ),
    "phi2": Model(
        "plain",
        lambda: decoder(
            "phi2",
            Shape(32, 2560, 32, 32, 80, 10240),
            words=51200,
            ctx=2048,
            style=GPT_STYLE._replace(ff_norm=False, fused_qkv=True, output_bias=True),
            rope__dimension_count=32,
        ),
        "q8_0",
    ),
    "phi3-mini": Model(
        "plain",
        lambda: decoder(
            "phi3",
            Shape(32, 3072, 32, 32, 96, 8192),
            words=32064,
            ctx=131072,
            style=Style(fused_qkv=True, fused_up=True),
            rope_factors=48,
            rope__dimension_count=96,
            attention__sliding_window=262144,
        ),
    ),
    "phi4-mini": Model(
        "plain",
        lambda: decoder(
            "phi3",
            Shape(32, 3072, 24, 8, 128, 8192),
            words=200064,
            ctx=131072,
            style=Style(fused_qkv=True, fused_up=True, tied=True),
            rope_factors=48,
            rope__dimension_count=96,
        ),
        "q8_0",
    ),
    "olmo2-7b": Model(
        "plain",
        lambda: decoder(
            "olmo2",
            Shape(32, 4096, 32, 32, 128, 11008),
            words=100352,
            ctx=4096,
            style=Style(qk_norm="all", attn_norm=False, ff_norm=False, more=POST_NORMS),
        ),
    ),
    "exaone-7.8b": Model(
        "plain",
        lambda: decoder("exaone", Shape(32, 4096, 32, 8, 128, 14336), words=102400, ctx=32768, rope_freqs=64),
    ),
    "granite-2b": Model(
        "plain",
        lambda: decoder(
            "granite",
            Shape(40, 2048, 32, 8, 64, 8192),
            words=49155,
            ctx=131072,
            style=TIED,
            logit_scale=8.0,
            attention__scale=0.015625,
        ),
    ),
    "command-r-35b": Model(
        "plain",
        lambda: decoder(
            "command-r",
            Shape(40, 8192, 64, 64, 128, 22528),
            words=256000,
            ctx=131072,
            style=Style(tied=True, ln=True, ff_norm=False),
            logit_scale=0.0625,
        ),
    ),
    "command-r-08-2024": Model(
        "plain",
        lambda: decoder(
            "command-r",
            Shape(40, 8192, 64, 8, 128, 24576),
            words=256000,
            ctx=131072,
            style=Style(tied=True, ln=True, ff_norm=False),
            logit_scale=0.0625,
        ),
    ),
    "nemotron-mini-4b": Model(
        "plain",
        lambda: decoder(
            "nemotron",
            Shape(32, 3072, 24, 8, 128, 9216),
            words=256000,
            ctx=4096,
            style=Style(ln=True, gate=False, norm_bias=True),
            rope__dimension_count=64,
        ),
    ),
    "starcoder2-7b": Model(
        "plain",
        lambda: decoder(
            "starcoder2",
            Shape(32, 4608, 36, 4, 128, 18432),
            words=49152,
            ctx=16384,
            style=GPT_STYLE._replace(fused_qkv=False, tied=True),
        ),
    ),
    "gptneox-20b": Model(
        "plain",
        lambda: decoder(
            "gptneox",
            Shape(44, 6144, 64, 64, 96, 24576),
            words=50432,
            ctx=2048,
            style=GPT_STYLE,
            rope__dimension_count=24,
            use_parallel_residual=True,
        ),
    ),
    "bloom-7b": Model("plain", lambda: _bloom(Shape(30, 4096, 32, 32, 128, 16384)), "q8_0"),
    "falcon-7b": Model(
        "plain",
        lambda: decoder(
            "falcon",
            Shape(32, 4544, 71, 1, 64, 18176),
            words=65024,
            ctx=2048,
            style=Style(ln=True, fused_qkv=True, gate=False, norm_bias=True, ff_norm=False),
        ),
        "q8_0",
    ),
    "mpt-7b": Model(
        "plain",
        lambda: decoder(
            "mpt",
            Shape(32, 4096, 32, 32, 128, 16384),
            words=50432,
            ctx=2048,
            style=Style(tied=True, ln=True, fused_qkv=True, gate=False),
            attention__max_alibi_bias=8.0,
        ),
        "q8_0",
    ),
    "stablelm-1.6b": Model(
        "plain",
        lambda: decoder(
            "stablelm",
            Shape(24, 2048, 32, 32, 64, 5632),
            words=100352,
            ctx=4096,
            style=Style(ln=True, bias=True, norm_bias=True),
            rope__dimension_count=16,
            use_parallel_residual=False,
        ),
        "q8_0",
    ),
    "internlm2-20b": Model(
        "plain", lambda: decoder("internlm2", Shape(48, 6144, 48, 8, 128, 16384), words=92544, ctx=32768)
    ),
    "baichuan2-7b": Model(
        "plain", lambda: decoder("baichuan", Shape(32, 4096, 32, 32, 128, 11008), words=125696, ctx=4096)
    ),
    "glm4-9b-chat": Model(
        "plain",
        lambda: decoder(
            "chatglm",
            Shape(40, 4096, 32, 2, 128, 13696),
            words=151552,
            ctx=131072,
            style=Style(bias=True, fused_qkv=True, fused_up=True),
            rope__dimension_count=64,
        ),
    ),
    "glm4-32b": Model(
        "plain",
        lambda: decoder(
            "glm4",
            Shape(61, 6144, 48, 2, 128, 23040),
            words=151552,
            ctx=32768,
            style=Style(fused_up=True, more=POST_NORMS),
            rope__dimension_count=64,
        ),
    ),
    "ernie45-0.3b": Model(
        "plain",
        lambda: decoder("ernie4_5", Shape(18, 1024, 16, 2, 128, 3072), words=103424, ctx=131072, style=TIED),
        "q8_0",
    ),
    "hunyuan-7b": Model(
        "plain",
        lambda: decoder(
            "hunyuan-dense", Shape(32, 4096, 32, 8, 128, 14336), words=128167, ctx=32768, style=TIED_HEAD_NORMS
        ),
    ),
    "seed-oss-36b": Model(
        "plain",
        lambda: decoder(
            "seed_oss",
            Shape(64, 5120, 80, 8, 128, 27648),
            words=155136,
            ctx=524288,
            style=Style(bias=True, ff_norm=False, more=("post_attention_norm",)),
        ),
    ),
    "apertus-8b": Model(
        "plain",
        lambda: _apertus(Shape(32, 4096, 32, 8, 128, 21504)),
    ),
    "gemma-7b": Model(
        "plain", lambda: decoder("gemma", Shape(28, 3072, 16, 16, 256, 24576), words=256000, ctx=8192, style=TIED)
    ),
    "olmo-7b": Model(
        "plain",
        lambda: _olmo(Shape(32, 4096, 32, 32, 128, 11008)),
    ),
    "nemotron-super-49b": Model("plain", lambda: _deci()),
    "gpt2-large": Model(
        "plain",
        lambda: decoder(
            "gpt2",
            Shape(36, 1280, 20, 20, 64, 5120),
            words=50257,
            ctx=1024,
            style=GPT_STYLE._replace(tied=True),
            positions=True,
        ),
        "f16",
    ),
}


def _bloom(shape: Shape) -> Header:
    h = decoder("bloom", shape, words=250880, ctx=2048, style=GPT_STYLE._replace(tied=True))
    h.weight("token_embd_norm", shape.embd)
    h.bias("token_embd_norm", shape.embd)
    return h


def _apertus(shape: Shape) -> Header:
    """An activation with learned parameters, which the file keeps outside of the architecture's keys."""
    style = Style(gate=False, qk_norm="head")
    h = decoder("apertus", shape, words=131072, ctx=65536, style=style, rope_freqs=64)
    for name, value in (("alpha_p", 0.8), ("alpha_n", 0.8), ("beta", 0.5), ("eps", 0.0)):
        h.kv[f"xielu.{name}"] = [value] * shape.layers
    return h


def _olmo(shape: Shape) -> Header:
    """Norms without weights."""
    h = decoder("olmo", shape, words=50304, ctx=2048, style=Style(ln=True, attn_norm=False, ff_norm=False))
    h.tensors = [tensor for tensor in h.tensors if tensor[0] != "output_norm.weight"]
    return h


def _deci() -> Header:
    """Searched architecture: some blocks lack attention, and every block has its own width."""
    layers, embd, heads, head = 80, 8192, 64, 128
    kv = [0 if 42 <= i < 72 else 8 for i in range(layers)]
    ff = [28672 if i < 40 else 14336 if i < 60 else 5632 + 1024 * (i - 60) for i in range(layers)]
    h = zoo.start(
        "deci",
        "deci",
        layers=layers,
        embd=embd,
        ctx=131072,
        words=128256,
        ff=ff,
        heads=[heads if k else 0 for k in kv],
        kv_heads=kv,
        head=head,
    )
    zoo.ends(h, embd, 128256)
    h.weight("rope_freqs", 64)
    for i in range(layers):
        if kv[i]:
            zoo.attention(h, i, embd, heads, kv[i], head)
        zoo.feed_forward(h, i, embd, ff[i])
    return h


WINDOW: dict[str, Model] = {
    "gemma2-2b": Model("window", lambda: _gemma2(Shape(26, 2304, 8, 4, 256, 9216)), "q8_0"),
    "gemma2-9b": Model("window", lambda: _gemma2(Shape(42, 3584, 16, 8, 256, 14336))),
    "gemma2-27b": Model("window", lambda: _gemma2(Shape(46, 4608, 32, 16, 128, 36864)), "q5_k_m"),
    "gemma3-270m": Model("window", lambda: _gemma3(Shape(18, 640, 4, 1, 256, 2048), 512, 32768), "q8_0"),
    "gemma3-27b": Model("window", lambda: _gemma3(Shape(62, 5376, 32, 16, 128, 21504))),
    "gpt-oss-120b": Model("window", lambda: zoo.gpt_oss("gpt-oss 120B", layers=36, count=128), "mxfp4_moe"),
    "exaone4-32b": Model(
        "window",
        lambda: decoder(
            "exaone4",
            Shape(64, 5120, 40, 8, 128, 27392),
            words=102400,
            ctx=131072,
            style=Style(qk_norm="head", attn_norm=False, ff_norm=False, more=POST_NORMS),
            attention__sliding_window=4096,
            attention__sliding_window_pattern=[(i + 1) % 4 != 0 for i in range(64)],
        ),
    ),
    "olmo3-7b": Model(
        "window",
        lambda: decoder(
            "olmo2",
            Shape(32, 4096, 32, 32, 128, 11008),
            words=100278,
            ctx=65536,
            style=Style(qk_norm="all", attn_norm=False, ff_norm=False, more=POST_NORMS),
            attention__sliding_window=4096,
            attention__sliding_window_pattern=[(i + 1) % 4 != 0 for i in range(32)],
        ),
    ),
    "command-a-111b": Model(
        "window",
        lambda: decoder(
            "cohere2",
            Shape(64, 12288, 96, 8, 128, 36864),
            words=256000,
            ctx=131072,
            style=Style(tied=True, ln=True, ff_norm=False),
            logit_scale=0.25,
            attention__sliding_window=4096,
        ),
        "iq4_xs",
    ),
    "llama4-scout": Model("window", lambda: _llama4(48, 16, 1)),
    "llama4-maverick": Model("window", lambda: _llama4(48, 128, 2), "ud_q2"),
    "smallthinker-21b": Model(
        "window",
        lambda: decoder(
            "smallthinker",
            Shape(52, 2560, 28, 4, 128, 768),
            words=151936,
            ctx=16384,
            experts=Experts(64, 6, 768),
            expert_gating_func=2,
            attention__sliding_window=4096,
        ),
    ),
    "afmoe-26b": Model(
        "window",
        lambda: decoder(
            "afmoe",
            Shape(32, 2048, 32, 4, 128, 6144),
            words=200192,
            ctx=131072,
            style=Style(qk_norm="head", more=POST_NORMS, attn_gate=True),
            experts=Experts(128, 8, 1024, shared=1024, lead=2, probs_bias=True),
            attention__sliding_window=2048,
        ),
    ),
    "plamo3-8b": Model("window", lambda: _plamo3(Shape(32, 4096, 32, 4, 128, 16384))),
    "cohere2moe": Model(
        "window",
        lambda: decoder(
            "cohere2moe",
            Shape(49, 2048, 32, 4, 128, 6144),
            words=256000,
            ctx=131072,
            style=Style(ln=True, ff_norm=False, tied=True),
            experts=Experts(128, 8, 768, lead=1),
            attention__sliding_window=4096,
            logit_scale=0.25,
        ),
    ),
    "exaone-moe": Model(
        "window",
        lambda: decoder(
            "exaone-moe",
            Shape(48, 6144, 64, 8, 128, 18432),
            words=153600,
            ctx=131072,
            style=HEAD_NORMS,
            experts=Experts(128, 8, 2048, shared=2048, lead=1, probs_bias=True),
            attention__sliding_window=128,
            attention__sliding_window_pattern=[(i + 1) % 4 != 0 for i in range(48)],
        ),
        "ud_q2",
    ),
}


def _plamo3(shape: Shape) -> Header:
    """The norms behind attention and feed-forward are named without "weight"."""
    style = Style(qk_norm="head", fused_qkv=True, fused_up=True)
    h = decoder("plamo3", shape, words=107520, ctx=4096, style=style, attention__sliding_window=2048)
    for i in range(shape.layers):
        for name in POST_NORMS:
            h.add(f"blk.{i}.{name}", shape.embd, type="F32")
    return h


def _llama4(layers: int, count: int, step: int) -> Header:
    shape, experts = Shape(layers, 5120, 40, 8, 128, 16384), Experts(count, 1, 8192, shared=8192, step=step)
    h = decoder("llama4", shape, words=202048, ctx=1048576, experts=experts, rope_freqs=64)
    h.put(interleave_moe_layer_step=step)
    return h


SHARED: dict[str, Model] = {
    "gemma3n-e2b": Model("shared-kv", lambda: zoo.gemma3n("Gemma 3n E2B it", layers=30, ff=8192), "q8_0"),
    "gemma4-e2b": Model(
        "shared-kv",
        lambda: zoo.gemma4(
            "Gemma 4 E2B it",
            layers=35,
            embd=1536,
            heads=8,
            kv_window=1,
            kv_full=1,
            every=5,
            window=512,
            ff=[6144] * 15 + [12288] * 20,
            ctx=131072,
            shared_kv=20,
            per_layer=256,
        ),
        "q8_0",
    ),
    "gemma4-31b": Model(
        "window",
        lambda: zoo.gemma4(
            "Gemma 4 31B it",
            layers=60,
            embd=5376,
            heads=32,
            kv_window=16,
            kv_full=4,
            every=6,
            window=1024,
            ff=21504,
            ctx=262144,
            v_is_k=True,
        ),
    ),
    "gemma4-26b-a4b": Model(
        "window",
        lambda: zoo.gemma4(
            "Gemma 4 26B A4B it",
            layers=30,
            embd=2816,
            heads=16,
            kv_window=8,
            kv_full=2,
            every=6,
            window=1024,
            ff=2112,
            ctx=262144,
            v_is_k=True,
            count=128,
            used=8,
            ff_exp=704,
        ),
    ),
}

MOE: dict[str, Model] = {
    "qwen3-235b-a22b": Model(
        "moe", lambda: _qwen3moe(Shape(94, 4096, 64, 4, 128, 12288), Experts(128, 8, 1536)), "ud_q2"
    ),
    "qwen3-coder-480b": Model(
        "moe", lambda: _qwen3moe(Shape(62, 6144, 96, 8, 128, 8192), Experts(160, 8, 2560)), "ud_q2"
    ),
    "qwen3-vl-30b-a3b": Model(
        "moe",
        lambda: decoder(
            "qwen3vlmoe",
            Shape(48, 2048, 32, 4, 128, 6144),
            words=151936,
            ctx=262144,
            style=HEAD_NORMS,
            experts=Experts(128, 8, 768),
            rope__dimension_sections=[24, 20, 20, 0],
            n_deepstack_layers=3,
        ),
    ),
    "qwen15-moe-a2.7b": Model(
        "moe",
        lambda: decoder(
            "qwen2moe",
            Shape(24, 2048, 16, 16, 128, 5632),
            words=151936,
            ctx=8192,
            style=BIASED,
            experts=Experts(60, 4, 1408, shared=5632, shared_gate=True),
        ),
    ),
    "qwen2-57b-a14b": Model(
        "moe",
        lambda: decoder(
            "qwen2moe",
            Shape(28, 3584, 28, 4, 128, 18944),
            words=151936,
            ctx=32768,
            style=BIASED,
            experts=Experts(64, 8, 2560, shared=20480, shared_gate=True),
        ),
    ),
    "mixtral-8x22b": Model(
        "moe",
        lambda: decoder(
            "llama", Shape(56, 6144, 48, 8, 128, 16384), words=32768, ctx=65536, experts=Experts(8, 2, 16384)
        ),
    ),
    "olmoe-7b": Model(
        "moe",
        lambda: decoder(
            "olmoe",
            Shape(16, 2048, 16, 16, 128, 1024),
            words=50304,
            ctx=4096,
            style=Style(qk_norm="all"),
            experts=Experts(64, 8, 1024),
        ),
        "q8_0",
    ),
    "phi35-moe": Model(
        "moe",
        lambda: decoder(
            "phimoe",
            Shape(32, 4096, 32, 8, 128, 6400),
            words=32064,
            ctx=131072,
            style=Style(bias=True, out_bias=True, norm_bias=True, output_bias=True),
            experts=Experts(16, 2, 6400),
            rope_factors=64,
        ),
    ),
    "granite31-3b-a800m": Model(
        "moe",
        lambda: decoder(
            "granitemoe",
            Shape(32, 1536, 24, 8, 64, 512),
            words=49155,
            ctx=131072,
            style=TIED,
            experts=Experts(40, 8, 512),
            logit_scale=6.0,
        ),
        "q8_0",
    ),
    "dbrx": Model(
        "moe",
        lambda: decoder(
            "dbrx",
            Shape(40, 6144, 48, 8, 128, 10752),
            words=100352,
            ctx=32768,
            style=Style(ln=True, fused_qkv=True, ff_norm=False, more=("attn_output_norm",)),
            experts=Experts(16, 4, 10752),
            attention__clamp_kqv=8.0,
        ),
        "q4_0",
    ),
    "arctic": Model("moe", lambda: _arctic(), "iq4_xs"),
    "deepseek-moe-16b": Model(
        "moe",
        lambda: decoder(
            "deepseek",
            Shape(28, 2048, 16, 16, 128, 10944),
            words=102400,
            ctx=4096,
            experts=Experts(64, 6, 1408, shared=2816, lead=1),
            expert_weights_scale=1.0,
        ),
    ),
    "glm45-355b": Model(
        "moe",
        lambda: zoo.glm45(
            "GLM 4.5",
            layers=92,
            embd=5120,
            heads=96,
            kv=8,
            ff=12288,
            ff_exp=1536,
            count=160,
            used=8,
            lead=3,
            qk_norm="head",
        ),
        "ud_q2",
    ),
    "ernie45-300b": Model(
        "moe",
        lambda: decoder(
            "ernie4_5-moe",
            Shape(54, 8192, 64, 8, 128, 28672),
            words=103424,
            ctx=131072,
            experts=Experts(64, 8, 3584, lead=3, probs_bias=True),
            interleave_moe_layer_step=1,
        ),
        "ud_q2",
    ),
    "dots1": Model(
        "moe",
        lambda: decoder(
            "dots1",
            Shape(62, 4096, 32, 32, 128, 10944),
            words=152064,
            ctx=32768,
            style=HEAD_NORMS,
            experts=Experts(128, 6, 1408, shared=2816, lead=1, probs_bias=True),
            expert_weights_scale=2.5,
        ),
    ),
    "ling-lite": Model(
        "moe",
        lambda: decoder(
            "bailingmoe",
            Shape(28, 2048, 16, 4, 128, 5632),
            words=126464,
            ctx=16384,
            experts=Experts(64, 6, 1408, shared=2816),
            rope__dimension_count=128,
            expert_weights_scale=1.0,
        ),
    ),
    "ling-mini-2": Model(
        "moe",
        lambda: decoder(
            "bailingmoe2",
            Shape(20, 2048, 16, 4, 128, 5120),
            words=157184,
            ctx=32768,
            style=Style(fused_qkv=True, qk_norm="head"),
            experts=Experts(256, 8, 512, shared=512, lead=1, probs_bias=True),
            rope__dimension_count=64,
            expert_group_count=8,
            expert_group_used_count=4,
            expert_weights_scale=2.5,
        ),
    ),
    "grok1": Model("moe", lambda: _grok(), "iq4_xs"),
}


def _arctic() -> Header:
    """A dense residual as wide as the embedding beside the experts."""
    shape = Shape(35, 7168, 56, 8, 128, 4864)
    h = begin("arctic", shape, words=32000, ctx=4096)
    h.put(expert_count=128, expert_used_count=2)
    zoo.ends(h, shape.embd, 32000)
    for i in range(shape.layers):
        zoo.attention(h, i, shape.embd, shape.heads, shape.kv, shape.head)
        zoo.feed_forward(h, i, shape.embd, shape.embd)
        zoo.experts(h, i, shape.embd, shape.ff, 128, norm=False)
        h.weight(f"blk.{i}.ffn_norm_exps", shape.embd)
    return h


def _grok() -> Header:
    style = Style(more=("attn_output_norm", "layer_output_norm"))
    return decoder(
        "grok", Shape(64, 6144, 48, 8, 128, 32768), words=131072, ctx=8192, style=style, experts=Experts(8, 2, 32768)
    )


MODELS: dict[str, Model] = {**PLAIN, **WINDOW, **SHARED, **MOE, **MIXED}


def build(name: str) -> Header:
    """The header of a model, its tokenizer reduced to a number of words."""
    return without_words(MODELS[name].build())


def without_words(h: Header) -> Header:
    """The header with its tokenizer reduced to a number of words."""
    for key in [key for key in h.kv if key.startswith("tokenizer.")]:
        if not key.endswith("token_type_count"):
            del h.kv[key]
    h.kv["tokenizer.ggml.model"] = "none"
    return h


def write(name: str, folder: str | Path) -> Path:
    """Write NAME.gguf (sparse) and return its path."""
    recipe = zoo.RECIPES[MODELS[name].recipe]
    return Path(zoo.write(str(folder), name, build(name), recipe)[0])
