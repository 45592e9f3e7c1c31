"""Blocks of gemma4: shared caches, experts beside the dense feed-forward, and an input for every block (gemma4.cpp)."""

from __future__ import annotations

from models_app.core.planning.replay.building import Build, attended, feed_forward, stored, turned
from models_app.core.planning.replay.experts import routed_experts
from models_app.core.planning.replay.tensors import F32, I32, Tensor


def gemma4_blocks(build: Build, x: Tensor) -> Tensor:
    """All blocks."""
    per_block = _block_inputs(build, x) if build.shape.block_input else None
    caches: dict[bool, tuple[Tensor, Tensor]] = {}
    for index in range(len(build.shape.blocks)):
        x = _block(build, x, index, per_block, caches)
    return x


def _block(
    build: Build, x: Tensor, index: int, per_block: Tensor | None, caches: dict[bool, tuple[Tensor, Tensor]]
) -> Tensor:
    graph, block, home = build.graph, build.shape.blocks[index], build.homes.blocks[index]
    y = _attention(build, build.norm(x, home), index, caches)
    x = graph.over(build.norm(y, home), x)
    y = feed_forward(build, build.norm(x, home), block.feed_forward, home, gated=True)
    if block.expert_width:
        y = build.norm(y, home)
        routed = build.norm(x, home)
        logits = build.linear(graph.over(graph.over(graph.over(x)), home=home), build.shape.experts, home)
        y = graph.over(y, build.norm(routed_experts(build, routed, index, logits), home))
    x = graph.over(build.norm(y, home), x)
    if per_block is not None:
        gate = graph.over(build.linear(x, build.shape.block_input, home))
        mine = graph.view(per_block, per_block.shape[:2], (F32 * build.shape.block_input,))
        y = build.linear(graph.over(gate, mine), build.shape.embedding, home)
        x = graph.over(x, build.norm(y, home))
    return graph.over(x, home=home)


def _attention(build: Build, x: Tensor, index: int, caches: dict[bool, tuple[Tensor, Tensor]]) -> Tensor:
    """Blocks without a cache of their own read that of the last block of their kind that has one."""
    graph, block, home, tokens = build.graph, build.shape.blocks[index], build.homes.blocks[index], build.tokens
    inputs = build.cache_inputs(block.sliding)
    q = graph.reshape(build.linear(x, block.heads * block.key_length, home), block.key_length, block.heads, tokens)
    q = build.placed(build.norm(q, home))
    q = q if inputs.key_turn is None else turned(graph, q, inputs.key_turn)
    graph.expand(q)
    if block.owns:
        k = v = build.linear(x, block.kv_heads * block.key_length, home)
        if block.sliding or build.shape.block_input:
            # In the large models, values of full attention are its keys.
            v = build.linear(x, block.kv_heads * block.value_length, home)
        k = graph.reshape(k, block.key_length, block.kv_heads, tokens)
        v = graph.over(graph.reshape(v, block.value_length, block.kv_heads, tokens))
        k = build.placed(build.norm(k, home))
        k = k if inputs.key_turn is None else turned(graph, k, inputs.key_turn)
        v = v if inputs.value_turn is None else turned(graph, v, inputs.value_turn)
        graph.expand(k, v)
        caches[block.sliding] = (
            stored(build, k, inputs.key_ids, inputs.cells, home, build.launch.type_k),
            stored(build, v, inputs.value_ids, inputs.cells, home, build.launch.type_v),
        )
    result = attended(build, q, *caches[block.sliding], inputs, None)
    result = result if inputs.value_turn is None else turned(graph, result, inputs.value_turn)
    return build.linear(result, build.shape.embedding, home)


def _block_inputs(build: Build, x: Tensor) -> Tensor:
    """One row for each block and token, from a table of its own and from the input."""
    graph, width, count, tokens = build.graph, build.shape.block_input, len(build.shape.blocks), build.tokens
    rows = graph.op((width * count, tokens), graph.given(tokens, element_bytes=I32), home=build.homes.host)
    rows = graph.over(graph.reshape(rows, width, count, tokens))
    graph.expand(rows)
    first = build.homes.blocks[0]
    projected = graph.over(build.linear(x, width * count, first))
    projected = build.norm(graph.reshape(projected, width, count, tokens), first)
    joined = graph.over(graph.over(projected, rows))
    return graph.op((width, tokens, count), graph.permute(joined, 0, 2, 1, 3))
