"""Building blocks of `more_models` and `mixed_models`: decoders in the many ways their tensors are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.zoo import zoo
from tests.zoo.zoo import Header


class Shape(NamedTuple):
    """Dimensions that every decoder has."""

    layers: int
    embd: int
    heads: int
    kv: int
    head: int
    ff: int


class Experts(NamedTuple):
    """Routed experts; `shared` is the width of the expert that every token passes."""

    count: int
    used: int
    width: int
    shared: int = 0
    lead: int = 0
    """So many leading blocks are dense."""
    step: int = 1
    """Blocks i with (i + 1) mod step = 0 have experts."""
    probs_bias: bool = False
    shared_gate: bool = False
    gate: bool = True


class Style(NamedTuple):
    """How the tensors of a block are cut and named."""

    tied: bool = False
    ln: bool = False
    bias: bool = False
    out_bias: bool = False
    ff_bias: bool = False
    output_bias: bool = False
    fused_qkv: bool = False
    fused_up: bool = False
    gate: bool = True
    qk_norm: str = ""
    attn_norm: bool = True
    ff_norm: bool = True
    norm_bias: bool = False
    more: tuple[str, ...] = ()
    """Further norms of a block, as wide as the embedding."""
    attn_gate: bool = False
    sinks: bool = False


def decoder(
    arch: str,
    shape: Shape,
    *,
    words: int,
    ctx: int,
    style: Style | None = None,
    experts: Experts | None = None,
    positions: bool = False,
    rope_freqs: int = 0,
    rope_factors: int = 0,
    kv_list: Sequence[int] = (),
    ff_list: Sequence[int] = (),
    **keys: object,
) -> Header:
    """A decoder with attention in every block."""
    style = style or Style()
    h = begin(arch, shape, words=words, ctx=ctx, ln=style.ln, kv_list=kv_list, ff_list=ff_list, **keys)
    zoo.ends(h, shape.embd, words, tied=style.tied, norm_bias=style.norm_bias)
    if style.output_bias:
        h.bias("output", words)
    if positions:
        h.weight("position_embd", shape.embd, ctx, type="F32")
    if rope_freqs:
        h.weight("rope_freqs", rope_freqs)
    if rope_factors:
        h.weight("rope_factors_long", rope_factors)
        h.weight("rope_factors_short", rope_factors)
    if experts:
        expert_keys(h, experts)
    for i in range(shape.layers):
        attention(h, i, shape, style, kv_list[i] if kv_list else shape.kv)
        feed_forward(h, i, shape, style, experts, ff_list[i] if ff_list else shape.ff)
        for name in style.more:
            h.weight(f"blk.{i}.{name}", shape.embd)
    return h


def begin(
    arch: str,
    shape: Shape,
    *,
    words: int,
    ctx: int,
    ln: bool = False,
    kv_list: Sequence[int] = (),
    ff_list: Sequence[int] = (),
    **keys: object,
) -> Header:
    """Header with the usual keys."""
    return zoo.start(
        arch,
        arch,
        layers=shape.layers,
        embd=shape.embd,
        ctx=ctx,
        words=words,
        ff=list(ff_list) or shape.ff,
        heads=shape.heads,
        kv_heads=list(kv_list) or shape.kv,
        head=shape.head,
        ln=ln,
        **keys,
    )


def expert_keys(h: Header, experts: Experts) -> None:
    h.put(
        expert_count=experts.count,
        expert_used_count=experts.used,
        expert_feed_forward_length=experts.width,
        expert_shared_feed_forward_length=experts.shared or None,
        expert_shared_count=max(1, experts.shared // experts.width) if experts.shared else None,
        leading_dense_block_count=experts.lead or None,
        interleave_moe_layer_step=experts.step if experts.step > 1 else None,
        expert_gating_func=2 if experts.probs_bias else None,
    )


def attention(h: Header, i: int, shape: Shape, style: Style, kv: int) -> None:
    b = f"blk.{i}."
    zoo.attention(
        h,
        i,
        shape.embd,
        shape.heads,
        kv,
        shape.head,
        fused=style.fused_qkv,
        bias=style.bias,
        out_bias=style.out_bias,
        qk_norm=style.qk_norm,
        norm=style.attn_norm,
    )
    if style.norm_bias and style.attn_norm:
        h.bias(b + "attn_norm", shape.embd)
    if style.attn_gate:
        h.weight(b + "attn_gate", shape.embd, shape.heads * shape.head)
    if style.sinks:
        h.weight(b + "attn_sinks", shape.heads)


def feed_forward(h: Header, i: int, shape: Shape, style: Style, experts: Experts | None, ff: int) -> None:
    b = f"blk.{i}."
    if style.ff_norm:
        h.weight(b + "ffn_norm", shape.embd)
        if style.norm_bias:
            h.bias(b + "ffn_norm", shape.embd)
    if experts and i >= experts.lead and (i + 1) % experts.step == 0:
        zoo.experts(
            h,
            i,
            shape.embd,
            experts.width,
            experts.count,
            shared=experts.shared,
            probs_bias=experts.probs_bias,
            norm=False,
            gate=experts.gate,
            shared_gate=experts.shared_gate,
        )
        return
    zoo.feed_forward(h, i, shape.embd, ff, fused=style.fused_up, gate=style.gate, norm=False)
    if style.ff_bias:
        h.bias(b + "ffn_up", ff)
        h.bias(b + "ffn_down", shape.embd)


GPT_STYLE = Style(ln=True, bias=True, out_bias=True, ff_bias=True, fused_qkv=True, gate=False, norm_bias=True)
"""Layer norms and biases everywhere, one joint projection, no gate."""
POST_NORMS = ("post_attention_norm", "post_ffw_norm")
GEMMA = Style(tied=True, qk_norm="head", more=POST_NORMS)
TIED = Style(tied=True)
HEAD_NORMS = Style(qk_norm="head")
TIED_HEAD_NORMS = Style(tied=True, qk_norm="head")
BIASED = Style(bias=True)


@dataclass(frozen=True)
class Model:
    """A header and how its tensors are quantised."""

    kind: str
    build: Callable[[], Header]
    recipe: str = "q4_k_m"
