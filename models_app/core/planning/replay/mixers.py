"""Recurrent mixers of the mamba kinds, and short convolutions (mamba-base.cpp, lfm2.cpp)."""

from __future__ import annotations

from collections.abc import Callable

from models_app.core.planning.replay.building import Build
from models_app.core.planning.replay.tensors import Tensor


def recurrent_state(build: Build, state: Tensor, scan: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """The states of all sequences of a micro-batch (build_rs); `scan` reads them where they lie instead."""
    graph, slots = build.graph, build.geo.slots
    floats = state.shape[0]
    rows = graph.reshape(state, floats, state.shape[1])
    graph.expand(graph.write(rows, graph.view(rows, (0,), ())))
    if scan is None:
        every = graph.op((floats, slots), rows, build.state_ids)
        mine = graph.view(every, (floats, slots), (every.strides[1],))
        others = graph.view(every, (floats, 0), (every.strides[1],))
    else:
        every = graph.op((floats, slots - 1), rows, build.other_state_ids)
        mine = scan(rows)
        others = graph.view(every, (floats, 0), (every.strides[1],))
    graph.expand(mine)
    graph.expand(graph.write(state, others))
    return mine


def _convolved(build: Build, x: Tensor, width: int, home: int) -> Tensor:
    """A convolution, its bias and its activation."""
    result = build.graph.op((width, x.shape[1], build.geo.slots), convolution_input(build, x, width, home), home=home)
    return build.graph.over(build.graph.over(result, home=home))


def convolution_input(build: Build, x: Tensor, width: int, home: int) -> Tensor:
    """What a convolution over the tokens of each sequence reads: it starts with the tail of what came before."""
    graph, kernel, slots = build.graph, build.shape.mixer.kernel, build.geo.slots
    tail = graph.stored((kernel - 1) * width, slots, home=home)
    before = graph.reshape(recurrent_state(build, tail), kernel - 1, width, slots)
    joined = graph.op((kernel - 1 + x.shape[1], width, slots), before, graph.permute(x, 1, 0, 2, 3))
    last = graph.view(joined, (kernel - 1, width, slots), joined.strides[1:3])
    graph.expand(graph.write(tail, last))
    return joined


def first_mamba(build: Build, x: Tensor, index: int) -> Tensor:
    """A mixer of the first generation (build_mamba_layer)."""
    graph, mixer, home, slots = build.graph, build.shape.mixer, build.homes.blocks[index], build.geo.slots
    inner, state, rank, tokens = mixer.inner, mixer.state, mixer.heads, build.tokens // build.geo.slots
    both = build.linear(graph.reshape(x, x.shape[0], tokens, slots), 2 * inner, home)
    convolved_part, gate = (graph.view(both, (inner, tokens, slots), both.strides[1:3]) for _ in range(2))
    x = _convolved(build, convolved_part, inner, home)
    projected = build.linear(x, rank + 2 * state, home)
    step = graph.view(projected, (rank, tokens, slots), projected.strides[1:3])
    b, c = (graph.view(projected, (state, 1, tokens, slots), (4 * state, *projected.strides[1:3])) for _ in range(2))
    if build.shape.architecture == "jamba":
        step, b, c = (build.norm(part, home) for part in (step, b, c))
    else:
        step = graph.op(step.shape, step)
    step = graph.over(build.linear(step, inner, home), home=home)
    rows = graph.reshape(x, 1, inner, tokens, slots)
    stored = graph.stored(state * inner, slots, home=home)

    def scan(states: Tensor) -> Tensor:
        laid_out = graph.reshape(states, state, 1, inner, slots)
        floats = inner * build.tokens + state * inner * slots
        return graph.op((floats,), laid_out, rows, step, b, c, build.own_state_ids, home=home)

    scanned = recurrent_state(build, stored, scan)
    graph.expand(graph.write(stored, graph.view(scanned, (state * inner * slots,), ())))
    y = graph.view(scanned, (inner, tokens, slots), rows.strides[2:4])
    y = graph.over(y, graph.over(x, home=home))
    y = graph.op(y.shape, graph.op(gate.shape, gate), y)
    return graph.reshape(build.linear(y, build.shape.embedding, home), build.shape.embedding, build.tokens)


def second_mamba(build: Build, x: Tensor, index: int) -> Tensor:
    """A mixer of the second generation (build_mamba2_layer)."""
    graph, mixer, home, slots = build.graph, build.shape.mixer, build.homes.blocks[index], build.geo.slots
    inner, state, groups, heads = mixer.inner, mixer.state, mixer.groups, mixer.heads
    head, tokens, width = inner // heads, build.tokens // build.geo.slots, inner + 2 * groups * state
    projected = build.linear(x, inner + width + heads, home)
    projected = graph.reshape(projected, projected.shape[0], tokens, slots)
    per_token = projected.strides[1:3]
    gate = graph.view(projected, (head, heads, tokens, slots), (4 * head, *per_token))
    step = graph.view(projected, (heads, tokens, slots), per_token)
    joined = _convolved(build, graph.view(projected, (width, tokens, slots), per_token), width, home)
    per_token = joined.strides[1:3]
    x = graph.view(joined, (head, heads, tokens, slots), (4 * head, *per_token))
    b, c = (graph.view(joined, (state, groups, tokens, slots), (4 * state, *per_token)) for _ in range(2))
    step = graph.over(graph.op(step.shape, step), home=home)
    stored = graph.stored(state * inner, slots, home=home)

    def scan(states: Tensor) -> Tensor:
        laid_out = graph.reshape(states, state, head, heads, slots)
        floats = inner * build.tokens + state * inner * slots
        return graph.op((floats,), laid_out, x, step, b, c, build.own_state_ids, home=home)

    scanned = recurrent_state(build, stored, scan)
    graph.expand(graph.write(stored, graph.view(scanned, (state * inner, slots, 1), (4 * state * inner,))))
    y = graph.view(scanned, (head, heads, tokens, slots), (x.strides[1], heads * x.strides[1]))
    y = graph.over(y, graph.over(x, home=home))
    y = graph.op(y.shape, graph.op(gate.shape, gate), y)
    if mixer.groups and build.shape.architecture != "falcon-h1":
        y = build.norm(graph.reshape(y, inner // groups, groups, tokens, slots), home)
    return build.linear(graph.reshape(y, inner, build.tokens), build.shape.embedding, home)


def short_convolution(build: Build, x: Tensor, index: int) -> Tensor:
    """A gated convolution over a few tokens (build_shortconv_block)."""
    graph, width, home, slots = build.graph, build.shape.embedding, build.homes.blocks[index], build.geo.slots
    tokens = build.tokens // slots
    joined = build.linear(graph.reshape(x, width, tokens, slots), 3 * width, home)
    b, c, inner = (graph.view(joined, (width, tokens, slots), joined.strides[1:3]) for _ in range(3))
    read = convolution_input(build, graph.over(b, inner), width, home)
    y = graph.over(c, graph.op((width, tokens, slots), read, home=home))
    return graph.reshape(build.linear(y, width, home), width, build.tokens)
