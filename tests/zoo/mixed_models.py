"""Further headers with recurrent blocks, with compressed caches, and encoders."""

from __future__ import annotations

from tests.zoo import zoo
from tests.zoo.decoders import BIASED, GEMMA, HEAD_NORMS, Experts, Model, Shape, Style, begin, decoder, expert_keys
from tests.zoo.zoo import Header


def mamba1(h: Header, i: int, embd: int, state: int, rank: int, *, inner_norms: bool = False) -> None:
    """One selective state-space mixer of the first generation."""
    b, inner = f"blk.{i}.", 2 * embd
    h.weight(b + "attn_norm", embd)
    h.weight(b + "ssm_in", embd, 2 * inner)
    h.weight(b + "ssm_conv1d", 4, inner)
    h.bias(b + "ssm_conv1d", inner)
    h.weight(b + "ssm_x", inner, rank + 2 * state)
    h.weight(b + "ssm_dt", rank, inner)
    h.bias(b + "ssm_dt", inner)
    h.add(b + "ssm_a", state, inner, type="F32")
    h.add(b + "ssm_d", inner, type="F32")
    h.weight(b + "ssm_out", inner, embd)
    if inner_norms:
        h.weight(b + "ssm_dt_norm", rank)
        h.weight(b + "ssm_b_norm", state)
        h.weight(b + "ssm_c_norm", state)


def mamba1_keys(h: Header, embd: int, state: int, rank: int) -> None:
    h.put(ssm__conv_kernel=4, ssm__inner_size=2 * embd, ssm__state_size=state, ssm__time_step_rank=rank)


def mamba1_only(layers: int, embd: int, words: int, *, tied: bool = True) -> Header:
    rank = embd // 16
    h = begin("mamba", Shape(layers, embd, 0, 0, 0, 0), words=words, ctx=1048576)
    mamba1_keys(h, embd, 16, rank)
    zoo.ends(h, embd, words, tied=tied)
    for i in range(layers):
        mamba1(h, i, embd, 16, rank)
    return h


def jamba(shape: Shape, words: int, experts: Experts | None) -> Header:
    """Attention in the fifth of every eight blocks, experts in every second one."""
    attends = [i % 8 == 4 for i in range(shape.layers)]
    rank, kv = shape.embd // 16, [shape.kv if here else 0 for here in attends]
    h = begin("jamba", shape._replace(head=0), words=words, ctx=262144, kv_list=kv)
    mamba1_keys(h, shape.embd, 16, rank)
    if experts:
        h.put(expert_count=experts.count, expert_used_count=experts.used)
    zoo.ends(h, shape.embd, words)
    for i in range(shape.layers):
        if attends[i]:
            zoo.attention(h, i, shape.embd, shape.heads, shape.kv, shape.head)
        else:
            mamba1(h, i, shape.embd, 16, rank, inner_norms=True)
        if experts and i % 2:
            zoo.experts(h, i, shape.embd, shape.ff, experts.count)
        else:
            zoo.feed_forward(h, i, shape.embd, shape.ff)
    return h


def falcon_h1(shape: Shape, words: int, inner: int, state: int, groups: int, heads: int) -> Header:
    """Attention and a state-space mixer side by side in every block; one norm is named without "weight"."""
    h = begin("falcon-h1", shape, words=words, ctx=131072)
    h.put(ssm__conv_kernel=4, ssm__inner_size=inner, ssm__state_size=state, ssm__group_count=groups)
    h.put(ssm__time_step_rank=heads)
    zoo.ends(h, shape.embd, words)
    for i in range(shape.layers):
        zoo.attention(h, i, shape.embd, shape.heads, shape.kv, shape.head)
        zoo.mamba2(h, i, shape.embd, inner, state, groups, heads, 4, norm=False, inner_norm=False)
        h.add(f"blk.{i}.ffn_norm", shape.embd, type="F32")
        zoo.feed_forward(h, i, shape.embd, shape.ff, norm=False)
    return h


def lfm2moe(shape: Shape, words: int, attends: tuple[int, ...], experts: Experts) -> Header:
    kv = [shape.kv if i in attends else 0 for i in range(shape.layers)]
    h = begin("lfm2moe", shape._replace(head=0), words=words, ctx=128000, kv_list=kv, shortconv__l_cache=3)
    expert_keys(h, experts)
    h.weight("token_embd", shape.embd, words)
    h.weight("token_embd_norm", shape.embd)
    for i in range(shape.layers):
        b = f"blk.{i}."
        if i in attends:
            zoo.attention(h, i, shape.embd, shape.heads, shape.kv, shape.head, qk_norm="head")
        else:
            h.weight(b + "attn_norm", shape.embd)
            h.weight(b + "shortconv.conv", 3, shape.embd)
            h.weight(b + "shortconv.in_proj", shape.embd, 3 * shape.embd)
            h.weight(b + "shortconv.out_proj", shape.embd, shape.embd)
        if i < experts.lead:
            zoo.feed_forward(h, i, shape.embd, shape.ff)
        else:
            zoo.experts(h, i, shape.embd, experts.width, experts.count, probs_bias=True)
    return h


def rwkv6(layers: int, embd: int, ff: int, words: int) -> Header:
    h = begin("rwkv6", Shape(layers, embd, 0, 0, 0, ff), words=words, ctx=1048576, ln=True)
    h.put(wkv__head_size=64, time_mix_extra_dim=32, time_decay_extra_dim=64, rescale_every_n_layers=6)
    rwkv_ends(h, embd, words)
    for i in range(layers):
        b = f"blk.{i}."
        rwkv_norms(h, b, embd)
        h.weight(b + "time_mix_w1", embd, 160)
        h.weight(b + "time_mix_w2", 32, embd, 5)
        for name in ("x", "w", "k", "v", "r", "g"):
            h.weight(b + f"time_mix_lerp_{name}", embd, 1, 1, type="F32")
        h.weight(b + "time_mix_first", 64, embd // 64, type="F32")
        h.weight(b + "time_mix_decay", embd)
        h.weight(b + "time_mix_decay_w1", embd, 64)
        h.weight(b + "time_mix_decay_w2", 64, embd)
        for name in ("key", "value", "receptance", "gate", "output"):
            h.weight(b + f"time_mix_{name}", embd, embd)
        h.weight(b + "channel_mix_lerp_k", embd, 1, 1, type="F32")
        h.weight(b + "channel_mix_lerp_r", embd, 1, 1, type="F32")
        h.weight(b + "channel_mix_key", embd, ff)
        h.weight(b + "channel_mix_value", ff, embd)
        h.weight(b + "channel_mix_receptance", embd, embd)
    return h


def rwkv7(layers: int, embd: int, ff: int, words: int, decay: int, rate: int, mix: int, gate: int) -> Header:
    h = begin("rwkv7", Shape(layers, embd, 0, 0, 0, ff), words=words, ctx=1048576, ln=True)
    h.put(wkv__head_size=64, attention__decay_lora_rank=decay, attention__iclr_lora_rank=rate)
    h.put(attention__value_residual_mix_lora_rank=mix, attention__gate_lora_rank=gate)
    rwkv_ends(h, embd, words)
    for i in range(layers):
        b = f"blk.{i}."
        rwkv_norms(h, b, embd)
        for name, rank in (("w", decay), ("a", rate), ("v", mix if i else rate)):
            h.weight(b + f"time_mix_{name}0", embd)
            h.weight(b + f"time_mix_{name}1", embd, rank)
            h.weight(b + f"time_mix_{name}2", rank, embd)
        h.weight(b + "time_mix_g1", embd, gate)
        h.weight(b + "time_mix_g2", gate, embd)
        h.weight(b + "time_mix_lerp_fused", embd, 1, 1, 6, type="F32")
        for name in ("k_k", "k_a", "r_k"):
            h.weight(b + f"time_mix_{name}", embd)
        for name in ("key", "value", "receptance", "output"):
            h.weight(b + f"time_mix_{name}", embd, embd)
        h.weight(b + "channel_mix_lerp_k", embd, 1, 1, type="F32")
        h.weight(b + "channel_mix_key", embd, ff)
        h.weight(b + "channel_mix_value", ff, embd)
    return h


def rwkv_ends(h: Header, embd: int, words: int) -> None:
    zoo.ends(h, embd, words, norm_bias=True)
    h.weight("token_embd_norm", embd)
    h.bias("token_embd_norm", embd)


def rwkv_norms(h: Header, b: str, embd: int) -> None:
    for name in ("attn_norm", "attn_norm_2", "time_mix_ln"):
        h.weight(b + name, embd)
        h.bias(b + name, embd)


def plamo2(shape: Shape, words: int, inner: int, heads: int) -> Header:
    """Attention in every second block; the mixer's norms are named without "weight"."""
    kv = [shape.kv if i % 2 else 0 for i in range(shape.layers)]
    rank = max(64, shape.embd // 16)
    h = begin("plamo2", shape, words=words, ctx=10485760, kv_list=kv)
    h.put(ssm__conv_kernel=4, ssm__inner_size=inner, ssm__state_size=64, ssm__time_step_rank=heads, ssm__group_count=0)
    zoo.ends(h, shape.embd, words, tied=True)
    for i in range(shape.layers):
        b = f"blk.{i}."
        if i % 2:
            zoo.attention(h, i, shape.embd, shape.heads, shape.kv, shape.head, fused=True)
            h.weight(b + "attn_q_norm", shape.head, shape.heads)
            h.weight(b + "attn_k_norm", shape.head, shape.kv)
        else:
            h.weight(b + "attn_norm", shape.embd)
            h.weight(b + "ssm_in", shape.embd, 2 * inner)
            h.weight(b + "ssm_conv1d", 4, inner)
            h.weight(b + "ssm_x", inner, rank + 128)
            h.weight(b + "ssm_dt", rank, heads)
            h.bias(b + "ssm_dt", heads)
            h.weight(b + "ssm_out", inner, shape.embd)
            for name, width in (("a", heads), ("d", heads), ("dt_norm", rank), ("b_norm", 64), ("c_norm", 64)):
                h.add(b + f"ssm_{name}", width, type="F32")
        h.add(b + "post_attention_norm", shape.embd, type="F32")
        h.add(b + "post_ffw_norm", shape.embd, type="F32")
        zoo.feed_forward(h, i, shape.embd, shape.ff, fused=True)
    return h


def minimax01(shape: Shape, words: int) -> Header:
    """Lightning attention, and softmax attention in every eighth block."""
    h = begin("minimax-01", shape, words=words, ctx=1048576, residual_scale=3.5565588, rope__dimension_count=64)
    h.put(expert_count=32, expert_used_count=2)
    zoo.ends(h, shape.embd, words)
    for i in range(shape.layers):
        b, width = f"blk.{i}.", shape.heads * shape.head
        if (i + 1) % 8:
            h.weight(b + "attn_norm", shape.embd)
            h.weight(b + "attn_norm_2", width)
            h.weight(b + "attn_qkv", shape.embd, 3 * width)
            h.weight(b + "attn_gate", shape.embd, width)
            h.weight(b + "attn_output", width, shape.embd)
        else:
            zoo.attention(h, i, shape.embd, shape.heads, shape.kv, shape.head)
        zoo.experts(h, i, shape.embd, shape.ff, 32)
    return h


def kimi_linear(layers: int, embd: int, heads: int, words: int, experts: Experts) -> Header:
    """Three blocks of delta attention, then one with a compressed cache."""
    size, rank, rot = 128, 512, 64
    kv = [0 if (i + 1) % 4 else 1 for i in range(layers)]
    h = begin("kimi-linear", Shape(layers, embd, heads, 1, rank + rot, 9216), words=words, ctx=1048576, kv_list=kv)
    h.put(attention__kv_lora_rank=rank, attention__key_length_mla=192, attention__value_length_mla=128)
    h.put(attention__value_length=rank, rope__dimension_count=rot, ssm__conv_kernel=4, kda__head_dim=size)
    expert_keys(h, experts)
    zoo.ends(h, embd, words)
    for i in range(layers):
        b = f"blk.{i}."
        h.weight(b + "attn_norm", embd)
        if kv[i]:
            latent_projections(h, b, embd, heads, 0, rank, 128, rot, 128)
        else:
            kda_mixer(h, b, embd, heads, size)
        if i < experts.lead:
            zoo.feed_forward(h, i, embd, 9216)
        else:
            zoo.experts(h, i, embd, experts.width, experts.count, shared=experts.shared, probs_bias=True)
    return h


def kda_mixer(h: Header, b: str, embd: int, heads: int, size: int) -> None:
    width = heads * size
    for name in ("q", "k", "v"):
        h.weight(b + f"attn_{name}", embd, width)
        h.weight(b + f"ssm_conv1d_{name}", 4, 1, width, type="F32")
    for name in ("f", "g"):
        h.weight(b + f"ssm_{name}_a", embd, size)
        h.weight(b + f"ssm_{name}_b", size, width)
    h.weight(b + "ssm_beta", embd, heads)
    h.add(b + "ssm_a", 1, heads, type="F32")
    h.bias(b + "ssm_dt", width)
    h.weight(b + "ssm_norm", size)
    h.weight(b + "attn_output", width, embd)


def latent_projections(
    h: Header, b: str, embd: int, heads: int, q_rank: int, rank: int, nope: int, rot: int, value: int
) -> None:
    if q_rank:
        h.weight(b + "attn_q_a_norm", q_rank)
        h.weight(b + "attn_q_a", embd, q_rank)
        h.weight(b + "attn_q_b", q_rank, heads * (nope + rot))
    else:
        h.weight(b + "attn_q", embd, heads * (nope + rot))
    h.weight(b + "attn_kv_a_norm", rank)
    h.weight(b + "attn_kv_a_mqa", embd, rank + rot)
    h.weight(b + "attn_k_b", nope, rank, heads)
    h.weight(b + "attn_v_b", rank, value, heads)
    h.weight(b + "attn_output", heads * value, embd)


def old_latent(shape: Shape, words: int, q_rank: int, experts: Experts) -> Header:
    """DeepSeek 2 as first converted: K and V are unpacked and cached in full."""
    nope, rot, value, rank = 128, 64, 128, 512
    h = begin("deepseek2", shape._replace(head=nope + rot), words=words, ctx=163840, rope__dimension_count=rot)
    h.put(attention__value_length=value, attention__kv_lora_rank=rank, attention__q_lora_rank=q_rank or None)
    expert_keys(h, experts)
    zoo.ends(h, shape.embd, words)
    for i in range(shape.layers):
        b = f"blk.{i}."
        h.weight(b + "attn_norm", shape.embd)
        latent_projections(h, b, shape.embd, shape.heads, q_rank, rank, nope, rot, value)
        h.tensors = [item for item in h.tensors if item[0] not in (b + "attn_k_b.weight", b + "attn_v_b.weight")]
        h.weight(b + "attn_kv_b", rank, shape.heads * (nope + value))
        if i < experts.lead:
            zoo.feed_forward(h, i, shape.embd, shape.ff)
        else:
            zoo.experts(h, i, shape.embd, experts.width, experts.count, shared=experts.shared)
    return h


def minicpm3(shape: Shape, words: int) -> Header:
    """Compressed projections with an ordinary cache."""
    q_rank, rank, rot, nope, value = 768, 256, 32, 64, 64
    h = begin("minicpm3", shape._replace(head=nope + rot), words=words, ctx=32768, rope__dimension_count=rot)
    h.put(attention__value_length=value, attention__q_lora_rank=q_rank, attention__kv_lora_rank=rank)
    zoo.ends(h, shape.embd, words, tied=True)
    h.weight("rope_factors_long", rot // 2)
    h.weight("rope_factors_short", rot // 2)
    for i in range(shape.layers):
        b = f"blk.{i}."
        h.weight(b + "attn_norm", shape.embd)
        h.weight(b + "attn_q_a_norm", q_rank)
        h.weight(b + "attn_kv_a_norm", rank)
        h.weight(b + "attn_q_a", shape.embd, q_rank)
        h.weight(b + "attn_q_b", q_rank, shape.heads * (nope + rot))
        h.weight(b + "attn_kv_a_mqa", shape.embd, rank + rot)
        h.weight(b + "attn_kv_b", rank, shape.heads * (nope + value))
        h.weight(b + "attn_output", shape.heads * value, shape.embd)
        zoo.feed_forward(h, i, shape.embd, shape.ff)
    return h


def modern_bert(layers: int, embd: int, heads: int, ff: int, words: int) -> Header:
    """Encoder with a window in two of three blocks; block 0 has no norm before attention."""
    h = begin("modern-bert", Shape(layers, embd, heads, heads, 0, ff), words=words, ctx=8192, ln=True)
    h.put(attention__causal=False, attention__sliding_window=128, attention__sliding_window_pattern=3, pooling_type=2)
    h.weight("token_embd", embd, words)
    h.weight("token_embd_norm", embd)
    h.weight("output_norm", embd)
    for i in range(layers):
        zoo.attention(h, i, embd, heads, heads, embd // heads, fused=True, norm=i > 0)
        zoo.feed_forward(h, i, embd, ff, fused=True)
    return h


def nomic_moe(layers: int, embd: int, heads: int, ff: int, words: int, count: int) -> Header:
    """Encoder with experts in every second block."""
    h = zoo.bert(
        "nomic-bert-moe",
        "nomic-embed-text v2",
        layers=layers,
        embd=embd,
        heads=heads,
        ff=ff,
        words=words,
        ctx=2048,
        pooling=1,
        positions=False,
        fused=True,
        bias=True,
        gate=False,
        moe_every_n_layers=2,
        expert_count=count,
        expert_used_count=2,
    )
    odd = tuple(f"blk.{i}.ffn_{name}." for i in range(1, layers, 2) for name in ("up", "down"))
    h.tensors = [item for item in h.tensors if not item[0].startswith(odd)]
    for i in range(1, layers, 2):
        b = f"blk.{i}."
        h.weight(b + "ffn_gate_inp", embd, count)
        h.weight(b + "ffn_up_exps", embd, ff, count)
        h.weight(b + "ffn_down_exps", ff, embd, count)
    return h


def t5_encoder(layers: int, embd: int, heads: int, ff: int, words: int) -> Header:
    h = begin("t5encoder", Shape(layers, embd, heads, heads, 64, ff), words=words, ctx=512, pooling_type=1)
    h.put(attention__relative_buckets_count=32, attention__causal=False)
    h.weight("token_embd", embd, words)
    h.weight("enc.output_norm", embd)
    for i in range(layers):
        b = f"enc.blk.{i}."
        h.weight(b + "attn_norm", embd)
        if i == 0:
            h.weight(b + "attn_rel_b", heads, 32, type="F16")
        for name in ("q", "k", "v"):
            h.weight(b + f"attn_{name}", embd, heads * 64)
        h.weight(b + "attn_o", heads * 64, embd)
        h.weight(b + "ffn_norm", embd)
        h.weight(b + "ffn_gate", embd, ff)
        h.weight(b + "ffn_up", embd, ff)
        h.weight(b + "ffn_down", ff, embd)
    return h


def encoder(
    arch: str, layers: int, embd: int, heads: int, ff: int, words: int, ctx: int = 512, **options: object
) -> Header:
    common = {"pooling": 2, "positions": True, "fused": False, "bias": True, "gate": False} | options
    return zoo.bert(arch, arch, layers=layers, embd=embd, heads=heads, ff=ff, words=words, ctx=ctx, **common)


_NEMOTRON3 = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
_NEMOTRON_4B = "M-M-M-M*-M-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-M-M-"
_NEMOTRON_47B = "M-M-M-M-M-M-M-M-M*-M-M-M-M-M-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-M-M---MM---M-M*-M-M-M-M-M-"

HYBRID: dict[str, Model] = {
    "qwen35-2b": Model(
        "hybrid",
        lambda: zoo.qwen_hybrid(
            "qwen35",
            "2B",
            layers=24,
            embd=2048,
            heads=8,
            kv=2,
            words=248320,
            k_heads=16,
            v_heads=16,
            ff=6144,
            tied=True,
        ),
        "q8_0",
    ),
    "qwen35-27b": Model(
        "hybrid",
        lambda: zoo.qwen_hybrid(
            "qwen35", "27B", layers=64, embd=5120, heads=24, kv=4, words=248320, k_heads=16, v_heads=48, ff=17408
        ),
    ),
    "qwen35-35b-a3b": Model(
        "hybrid",
        lambda: zoo.qwen_hybrid(
            "qwen35moe",
            "35B A3B",
            layers=40,
            embd=2048,
            heads=16,
            kv=2,
            words=248320,
            k_heads=16,
            v_heads=32,
            count=256,
            used=8,
            ff_exp=512,
        ),
    ),
    "qwen35-122b-a10b": Model(
        "hybrid",
        lambda: zoo.qwen_hybrid(
            "qwen35moe",
            "122B A10B",
            layers=48,
            embd=3072,
            heads=32,
            kv=2,
            words=248320,
            k_heads=16,
            v_heads=64,
            count=256,
            used=8,
            ff_exp=1024,
        ),
        "ud_q2",
    ),
    "lfm2-350m": Model(
        "hybrid",
        lambda: zoo.lfm2("350M", layers=16, embd=1024, heads=16, kv=8, ff=4608, attn_at=(2, 5, 8, 10, 12, 14)),
        "q8_0",
    ),
    "lfm2-2.6b": Model(
        "hybrid",
        lambda: zoo.lfm2(
            "2.6B", layers=30, embd=2048, heads=32, kv=8, ff=10752, attn_at=(2, 6, 10, 14, 17, 21, 24, 27)
        ),
    ),
    "lfm2-8b-a1b": Model(
        "hybrid",
        lambda: lfm2moe(
            Shape(24, 2048, 32, 8, 64, 7168),
            65536,
            (2, 6, 10, 14, 18, 21),
            Experts(32, 4, 1792, lead=2, probs_bias=True),
        ),
    ),
    "granite4-h-1b": Model(
        "hybrid",
        lambda: zoo.granite_hybrid(
            "1B", layers=40, embd=1536, heads=12, kv=4, attn_at=(5, 15, 25, 35), ff=4096, inner=3072, ssm_heads=48
        ),
        "q8_0",
    ),
    "granite4-h-tiny": Model(
        "hybrid",
        lambda: zoo.granite_hybrid(
            "7B A1B",
            layers=40,
            embd=1536,
            heads=12,
            kv=4,
            attn_at=(5, 15, 25, 35),
            ff=512,
            inner=3072,
            ssm_heads=48,
            count=64,
            used=6,
            shared=1024,
        ),
    ),
    "nemotron-h-4b": Model(
        "hybrid",
        lambda: zoo.nemotron_h(
            "nemotron_h",
            "4B",
            pattern=_NEMOTRON_4B,
            embd=3072,
            heads=32,
            kv=8,
            head=128,
            ff=12288,
            inner=7168,
            state=128,
            groups=8,
            ssm_heads=112,
            words=131072,
            ctx=8192,
        ),
        "q8_0",
    ),
    "nemotron-h-47b": Model(
        "hybrid",
        lambda: zoo.nemotron_h(
            "nemotron_h",
            "47B",
            pattern=_NEMOTRON_47B,
            embd=8192,
            heads=64,
            kv=8,
            head=128,
            ff=30720,
            inner=16384,
            state=256,
            groups=8,
            ssm_heads=256,
            words=131072,
            ctx=8192,
        ),
    ),
    "nemotron3-nano-30b-a3b": Model(
        "hybrid",
        lambda: zoo.nemotron_h(
            "nemotron_h_moe",
            "30B A3B",
            pattern=_NEMOTRON3,
            embd=2688,
            heads=32,
            kv=2,
            head=128,
            ff=1856,
            inner=4096,
            state=128,
            groups=8,
            ssm_heads=64,
            words=131072,
            ctx=262144,
            count=128,
            used=6,
            shared=3712,
        ),
    ),
    "falcon-h1-0.5b": Model(
        "hybrid", lambda: falcon_h1(Shape(36, 1024, 8, 2, 64, 2048), 32784, 1536, 128, 1, 24), "q8_0"
    ),
    "falcon-h1-7b": Model("hybrid", lambda: falcon_h1(Shape(44, 3072, 12, 2, 128, 12288), 130049, 3072, 256, 1, 24)),
    "falcon-h1-34b": Model("hybrid", lambda: falcon_h1(Shape(72, 5120, 20, 4, 128, 21504), 261120, 4096, 256, 2, 32)),
    "jamba-mini-52b": Model("hybrid", lambda: jamba(Shape(32, 4096, 32, 8, 128, 14336), 65536, Experts(16, 2, 14336))),
    "jamba-reasoning-3b": Model("hybrid", lambda: jamba(Shape(28, 2560, 20, 1, 128, 8192), 65536, None)),
    "plamo2-8b": Model("hybrid", lambda: plamo2(Shape(32, 4096, 32, 4, 128, 16384), 100000, 8192, 64)),
    "kimi-linear-48b": Model(
        "hybrid", lambda: kimi_linear(27, 2304, 32, 163840, Experts(256, 8, 1024, shared=1024, lead=1, probs_bias=True))
    ),
    "minimax-text-01": Model("hybrid", lambda: minimax01(Shape(80, 6144, 64, 8, 128, 9216), 200064), "ud_q2"),
}

RECURRENT: dict[str, Model] = {
    "mamba-130m": Model("recurrent", lambda: mamba1_only(24, 768, 50280), "f16"),
    "mamba-2.8b": Model("recurrent", lambda: mamba1_only(64, 2560, 50280), "q8_0"),
    "falcon-mamba-7b": Model("recurrent", lambda: mamba1_only(64, 4096, 65024, tied=False)),
    "mamba2-1.3b": Model(
        "recurrent",
        lambda: zoo.mamba2_only("1.3B", layers=48, embd=2048, inner=4096, state=128, groups=1, heads=64, words=50288),
        "f16",
    ),
    "rwkv6-7b": Model("recurrent", lambda: rwkv6(32, 4096, 14336, 65536), "q8_0"),
    "rwkv7-2.9b": Model("recurrent", lambda: rwkv7(32, 2560, 10240, 65536, 96, 96, 64, 320), "q8_0"),
    "rwkv7-0.4b": Model("recurrent", lambda: rwkv7(24, 1024, 4096, 65536, 64, 64, 32, 128), "f16"),
}

LATENT: dict[str, Model] = {
    "deepseek-v2-236b": Model(
        "latent",
        lambda: zoo.latent_attention(
            "V2",
            layers=60,
            embd=5120,
            heads=128,
            ff=12288,
            ff_exp=1536,
            count=160,
            used=6,
            shared=2,
            lead=1,
            words=102400,
            ctx=163840,
            q_rank=1536,
        ),
        "ud_q2",
    ),
    "kimi-k2": Model(
        "latent",
        lambda: zoo.latent_attention(
            "K2",
            layers=61,
            embd=7168,
            heads=64,
            ff=18432,
            ff_exp=2048,
            count=384,
            used=8,
            shared=1,
            lead=1,
            words=163840,
            ctx=131072,
            q_rank=1536,
            gating=2,
            probs_bias=True,
        ),
        "ud_q2",
    ),
    "glm47-flash": Model(
        "latent",
        lambda: zoo.latent_attention(
            "4.7 Flash",
            layers=47,
            embd=2048,
            heads=20,
            ff=10240,
            ff_exp=1536,
            count=64,
            used=4,
            shared=1,
            lead=1,
            words=154880,
            ctx=202752,
            q_rank=768,
            nope=192,
            value=256,
            gating=2,
            probs_bias=True,
        ),
    ),
    "deepseek-v2-lite-old": Model(
        "plain",
        lambda: old_latent(Shape(27, 2048, 16, 16, 0, 10944), 102400, 0, Experts(64, 6, 1408, shared=2816, lead=1)),
    ),
    "minicpm3-4b": Model("plain", lambda: minicpm3(Shape(62, 2560, 40, 40, 0, 6400), 73448)),
}

EMBEDDING: dict[str, Model] = {
    "bge-small-en": Model("embedding", lambda: encoder("bert", 12, 384, 12, 1536, 30522), "f16"),
    "all-minilm-l6": Model("embedding", lambda: encoder("bert", 6, 384, 12, 1536, 30522, pooling=1), "f16"),
    "mxbai-embed-large": Model("embedding", lambda: encoder("bert", 24, 1024, 16, 4096, 30522), "f16"),
    "bge-m3": Model("embedding", lambda: encoder("bert", 24, 1024, 16, 4096, 250002, 8192), "q8_0"),
    "nomic-embed-v2-moe": Model("embedding", lambda: nomic_moe(12, 768, 12, 3072, 250048, 8), "f16"),
    "jina-v2-base": Model(
        "embedding", lambda: encoder("jina-bert-v2", 12, 768, 12, 3072, 30528, 8192, positions=False, gate=True), "f16"
    ),
    "jina-v3": Model(
        "embedding",
        lambda: encoder("jina-bert-v3", 24, 1024, 16, 4096, 250002, 8192, positions=False, fused=True),
        "f16",
    ),
    "modernbert-base": Model("embedding", lambda: modern_bert(22, 768, 12, 1152, 50368), "f16"),
    "modernbert-large": Model("embedding", lambda: modern_bert(28, 1024, 16, 2624, 50368), "q8_0"),
    "embeddinggemma-300m": Model(
        "embedding",
        lambda: decoder(
            "gemma-embedding",
            Shape(24, 768, 3, 1, 256, 1152),
            words=262144,
            ctx=2048,
            style=GEMMA,
            attention__sliding_window=512,
            attention__causal=False,
            pooling_type=1,
        ),
        "q8_0",
    ),
    "qwen3-embedding-4b": Model(
        "embedding",
        lambda: decoder(
            "qwen3",
            Shape(36, 2560, 32, 8, 128, 9728),
            words=151665,
            ctx=40960,
            style=Style(qk_norm="head", tied=True),
            pooling_type=3,
        ),
    ),
    "t5-large": Model("embedding", lambda: t5_encoder(24, 1024, 16, 2816, 32128), "f16"),
}

DIFFUSION: dict[str, Model] = {
    "dream-7b": Model(
        "diffusion",
        lambda: decoder("dream", Shape(28, 3584, 28, 4, 128, 18944), words=152064, ctx=131072, style=BIASED),
    ),
    "llada-8b": Model(
        "diffusion", lambda: decoder("llada", Shape(32, 4096, 32, 32, 128, 12288), words=126464, ctx=4096), "q8_0"
    ),
    "llada-moe-7b": Model(
        "diffusion",
        lambda: decoder(
            "llada-moe",
            Shape(16, 2048, 16, 16, 128, 8192),
            words=157184,
            ctx=8192,
            style=HEAD_NORMS,
            experts=Experts(64, 8, 1024),
        ),
    ),
}

MIXED: dict[str, Model] = {**HYBRID, **RECURRENT, **LATENT, **EMBEDDING, **DIFFUSION}
