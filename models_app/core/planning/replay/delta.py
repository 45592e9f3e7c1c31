"""Gated delta nets and the attention beside them (qwen35.cpp, qwen3next.cpp)."""

from __future__ import annotations

from models_app.core.planning.replay.building import Build, cached_attention
from models_app.core.planning.replay.mixers import convolution_input, recurrent_state
from models_app.core.planning.replay.tensors import F32, Tensor


def gated_attention(build: Build, x: Tensor, index: int) -> Tensor:
    """Attention whose result is gated: queries and gates come out of one product."""
    graph, block, home, tokens = build.graph, build.shape.blocks[index], build.homes.blocks[index], build.tokens
    length, heads, kv_heads = block.key_length, block.heads, block.kv_heads
    joined = build.linear(x, 2 * length * heads, home)
    q, gate = (
        graph.view(joined, (length, heads, tokens), (2 * F32 * length, 2 * F32 * length * heads)) for _ in range(2)
    )
    k, v = (graph.reshape(build.linear(x, length * kv_heads, home), length, kv_heads, tokens) for _ in range(2))
    q, k = build.placed(build.norm(q, home)), build.placed(build.norm(k, home))
    result = cached_attention(build, q, k, v, index)
    result = graph.over(result, graph.over(graph.op(result.shape, gate)))
    return build.linear(result, build.shape.embedding, home)


def delta_net(build: Build, x: Tensor, index: int) -> Tensor:
    """A gated delta net (build_layer_attn_linear)."""
    graph, mixer, home, slots = build.graph, build.shape.mixer, build.homes.blocks[index], build.geo.slots
    inner, key, key_heads, heads = mixer.inner, mixer.state, mixer.groups, mixer.heads
    value, tokens, width = inner // heads, build.tokens // slots, inner + 2 * key_heads * key
    mixed = graph.reshape(build.linear(x, width, home), width, tokens, slots)
    z = build.linear(x, inner, home)
    beta, decay = _rates(build, x, home)
    read = convolution_input(build, mixed, width, home)
    stored = graph.stored(value * inner, slots, home=home)
    state = graph.reshape(recurrent_state(build, stored), value, value, heads, slots)
    convolved = graph.over(graph.op((width, tokens, slots), read, home=home))
    q, k = (_normed(build, convolved, key, key_heads) for _ in range(2))
    v = graph.view(convolved, (value, heads, tokens, slots), (F32 * value, *convolved.strides[1:3]))
    if key_heads != heads and build.shape.architecture == "qwen3next":
        q, k = (_repeated(build, part, heads) for part in (q, k))
    floats = inner * build.tokens + value * inner * slots
    result = graph.op((inner, floats // inner), q, k, v, decay, beta, state)
    after = graph.view(result, (value, value, heads, slots), (F32 * value, F32 * value**2, F32 * value * inner))
    graph.expand(graph.write(stored, after))
    y = graph.view(result, (value, heads, tokens, slots), (F32 * value, F32 * inner, F32 * inner * tokens))
    gate = graph.over(graph.reshape(z, value, heads, tokens, slots))
    y = graph.over(build.norm(y, home), gate)
    y = build.linear(graph.reshape(y, inner, tokens, slots), build.shape.embedding, home)
    return graph.reshape(y, build.shape.embedding, build.tokens)


def _rates(build: Build, x: Tensor, home: int) -> tuple[Tensor, Tensor]:
    """How fast each head writes, and how fast it forgets."""
    graph, heads, slots = build.graph, build.shape.mixer.heads, build.geo.slots
    tokens = build.tokens // slots
    if build.shape.architecture == "qwen3next":
        groups = build.shape.mixer.groups
        both = graph.reshape(build.linear(x, 2 * heads, home), 2 * heads // groups, groups, tokens, slots)
        b, a = (graph.view(both, (heads // groups, groups, tokens, slots), both.strides[1:]) for _ in range(2))
        beta = graph.reshape(graph.over(graph.op(b.shape, b)), 1, heads, tokens, slots)
        alpha = graph.op((heads, tokens, slots), a)
    else:
        beta = graph.over(graph.reshape(build.linear(x, heads, home), 1, heads, tokens, slots))
        alpha = graph.reshape(build.linear(x, heads, home), heads, tokens, slots)
    alpha = graph.over(graph.over(graph.over(alpha, home=home)), home=home)
    return beta, graph.reshape(alpha, 1, heads, tokens, slots)


def _normed(build: Build, convolved: Tensor, length: int, heads: int) -> Tensor:
    graph = build.graph
    part = graph.view(convolved, (length, heads, *convolved.shape[1:3]), (F32 * length, *convolved.strides[1:3]))
    return graph.over(graph.over(part))


def _repeated(build: Build, x: Tensor, heads: int) -> Tensor:
    """As many heads of queries and keys as there are of values."""
    graph, (length, few, tokens, slots) = build.graph, x.shape
    spread = graph.op((length, heads // few, few, tokens * slots), graph.reshape(x, length, 1, few, tokens * slots))
    return graph.reshape(spread, length, heads, tokens, slots)
