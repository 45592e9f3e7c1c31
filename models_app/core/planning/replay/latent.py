"""Attention over a compressed cache, in its absorbed form (deepseek2.cpp)."""

from __future__ import annotations

from models_app.core.planning.replay.building import Build, Widening, attended, stored
from models_app.core.planning.replay.tensors import F32, Tensor


def latent_attention(build: Build, x: Tensor, index: int) -> Tensor:
    """Queries are taken into the space of the cache, and its rows are keys and values at once."""
    graph, latent, home, tokens = build.graph, build.shape.latent, build.homes.blocks[index], build.tokens
    assert latent is not None
    heads, plain, turned = build.shape.blocks[index].heads, latent.key_length - latent.turned, latent.turned
    row = latent.rank + turned
    narrow = build.norm(build.linear(x, latent.query_rank, home), home) if latent.query_rank else x
    q = graph.reshape(build.linear(narrow, heads * latent.key_length, home), latent.key_length, heads, tokens)
    compressed = build.linear(x, row, home)
    k_turned = build.placed(graph.view(compressed, (turned, 1, tokens), (F32 * row, F32 * row)))
    kept = build.norm(graph.view(compressed, (latent.rank, tokens), (F32 * row,)), home)
    q_plain = graph.permute(graph.view(q, (plain, heads, tokens), q.strides[1:3]), 0, 2, 1, 3)
    q_turned = build.placed(graph.view(q, (turned, heads, tokens), q.strides[1:3]))
    absorbed = graph.permute(graph.op((latent.rank, tokens, heads), q_plain, home=home), 0, 2, 1, 3)
    q = graph.op((row, heads, tokens), absorbed, q_turned)
    kept = graph.reshape(kept, latent.rank, 1, tokens)
    k = graph.op((row, 1, tokens), kept, k_turned)
    if build.shape.scaled_queries:
        q = graph.over(q, build.query_scales)
    graph.expand(q, kept, k)
    inputs = build.cache_inputs(sliding=False)
    rows = stored(build, k, inputs.key_ids, inputs.cells, home, build.launch.type_k)
    values = graph.view(rows, (latent.rank, *rows.shape[1:]), rows.strides[1:])
    result = attended(build, q, rows, values, inputs, Widening(latent.value_length, home))
    return build.linear(result, build.shape.embedding, home)
