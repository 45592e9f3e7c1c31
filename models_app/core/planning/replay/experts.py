"""Routed experts (build_moe_ffn in llama-graph.cpp)."""

from __future__ import annotations

from models_app.core.planning.replay.building import Build
from models_app.core.planning.replay.tensors import I32, Tensor


def routed_experts(build: Build, x: Tensor, index: int, logits: Tensor | None = None) -> Tensor:
    """The sum of the results of the chosen experts; `logits` where the router reads something else than they do."""
    graph, shape, block, tokens = build.graph, build.shape, build.shape.blocks[index], build.tokens_of(x)
    home, used, width = build.homes.experts[index], shape.experts_used, shape.embedding
    router = build.style.router
    chosen, weights = _weights(build, x, index, logits)
    graph.expand(weights)
    rows = graph.reshape(x, width, 1, tokens)
    if router.weights_first:
        rows = graph.over(graph.op((width, used, tokens), rows), weights)
    up = graph.op((block.expert_width, used, tokens), rows, chosen, home=home)
    if block.expert_gated:
        gate = graph.op(up.shape, rows, chosen, home=home)
        product = graph.op(up.shape, gate, up)
    else:
        product = graph.over(graph.over(up))
    results = graph.op((width, used, tokens), product, chosen, home=home)
    if router.scaled_results:
        spread = graph.op((1, shape.experts, tokens), graph.stored(1, shape.experts, home=home))
        results = graph.over(results, graph.op((1, used, tokens), spread, chosen))
    if not router.weights_first:
        results = graph.over(results, weights)
    graph.expand(results)
    parts = [graph.view(results, (width, tokens), (results.strides[2],)) for _ in range(used)]
    graph.expand(*parts)
    total = parts[0]
    for part in parts[1:]:
        total = graph.over(total, part)
        graph.expand(total)
    return graph.op(total.shape, total) if used == 1 else total


def _weights(build: Build, x: Tensor, index: int, logits: Tensor | None) -> tuple[Tensor, Tensor]:
    """Which experts each token goes to, and how their results are weighted."""
    graph, experts, used = build.graph, build.shape.experts, build.shape.experts_used
    tokens, router = build.tokens_of(x), build.style.router
    if logits is None:
        logits = build.linear(x, experts, build.homes.blocks[index])
    biased = build.shape.router.sigmoid if router.biased is None else router.biased
    scores = logits if router.chosen_first else graph.over(logits)
    choice = logits if router.weights_first else graph.over(scores) if biased else scores
    order = graph.op(choice.shape, choice, element_bytes=I32)
    chosen = graph.view(order, (used, tokens), (order.strides[1],))
    weights = graph.op((1, used, tokens), graph.reshape(scores, 1, experts, tokens), chosen)
    if router.chosen_first:
        weights = graph.reshape(graph.over(graph.reshape(weights, used, tokens)), 1, used, tokens)
    if router.normed or (router.normed is None and build.shape.router.normed):
        flat = graph.reshape(weights, used, tokens)
        total = graph.over(graph.op((1, tokens), flat))
        weights = graph.reshape(graph.over(flat, total), 1, used, tokens)
    return chosen, graph.over(weights) if build.shape.router.scaled else weights
