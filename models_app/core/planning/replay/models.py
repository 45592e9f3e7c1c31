"""Whole graphs, by architecture (src/models in llama.cpp)."""

from __future__ import annotations

from models_app.core.planning.replay.building import Build, attention, embedded_input, feed_forward
from models_app.core.planning.replay.delta import delta_net, gated_attention
from models_app.core.planning.replay.experts import routed_experts
from models_app.core.planning.replay.gemma4 import gemma4_blocks
from models_app.core.planning.replay.latent import latent_attention
from models_app.core.planning.replay.mixers import first_mamba, second_mamba, short_convolution
from models_app.core.planning.replay.tensors import Graph, Tensor

MIXERS = {"mamba": first_mamba, "mamba2": second_mamba, "convolution": short_convolution, "delta": delta_net}


def whole_graph(build: Build) -> Graph:
    """Input, blocks, and logits."""
    style, graph, shape = build.style, build.graph, build.shape
    x = embedded_input(build)
    x = gemma4_blocks(build, x) if shape.architecture == "gemma4" else _blocks(build, x)
    if style.wanted_rows == "before norm":
        x = build.wanted_rows(_kept(x))
    x = build.norm(x, build.homes.output)
    if style.wanted_rows == "behind norm":
        x = build.wanted_rows(_kept(x))
    logits = build.linear(x, shape.vocabulary, build.homes.output)
    graph.expand(graph.over(logits) if shape.scaled_logits else logits)
    return graph


def _blocks(build: Build, x: Tensor) -> Tensor:
    graph, last = build.graph, len(build.shape.blocks) - 1
    for index in range(last + 1):
        x = _block(build, x, index, is_last=index == last)
        if build.input is not None and index < build.shape.stacked_inputs:
            x = graph.over(x, graph.view(build.input, build.input.shape[:2], build.input.strides[1:2]))
    return x


def _kept(x: Tensor) -> Tensor:
    """Drafters may read this, so its memory is not used again."""
    x.is_kept = True
    return x


def _block(build: Build, x: Tensor, index: int, *, is_last: bool) -> Tensor:
    home, block, graph, style = build.homes.blocks[index], build.shape.blocks[index], build.graph, build.style
    normed = build.norm(x, home) if style.norms_before else x
    if style.expands_norms:
        graph.expand(normed)
    if style.one_part and not (block.attends or block.recurrent):
        return graph.over(_feed_forward(build, normed, index), x)
    picks = is_last and style.wanted_rows in ("last block", "behind part")
    if style.parallel:
        return _parallel_block(build, x, normed, index, picks=picks)
    if block.attends and block.recurrent:
        y = _attention(build, normed, index)
        y = graph.over(y, MIXERS[style.mixer](build, build.norm(x, home), index))
        x = graph.over(y, x)
        x = build.wanted_rows(x) if picks else x
    else:
        y = _attention(build, normed, index) if block.attends else MIXERS[style.mixer](build, normed, index)
        y = _behind(build, y, home) if style.wanted_rows == "behind part" else y
        if picks:
            y, x = build.wanted_rows(y), build.wanted_rows(x)
        y = _behind(build, y, home) if style.wanted_rows != "behind part" else y
        x = graph.over(x, y) if style.residual_first else graph.over(y, x)
    if style.one_part:
        return x
    normed = build.norm(x, home) if style.norms_before else x
    y = _behind(build, _feed_forward(build, normed, index), home)
    return graph.over(x, y) if style.residual_first or style.residual_first_last else graph.over(y, x)


def _parallel_block(build: Build, x: Tensor, normed: Tensor, index: int, *, picks: bool) -> Tensor:
    """Attention and feed-forward side by side, both added to what came in."""
    graph = build.graph
    y = _attention(build, normed, index)
    if picks:
        y, x, normed = build.wanted_rows(y), build.wanted_rows(x), build.wanted_rows(normed)
    fed = _feed_forward(build, normed, index)
    match build.style.parallel:
        case "input":
            return graph.over(graph.over(fed, x), y)
        case "feed-forward":
            return graph.over(graph.over(fed, y), x)
        case _:
            return graph.over(graph.over(y, fed), x)


def _behind(build: Build, y: Tensor, home: int) -> Tensor:
    """What happens to a part's result before it is added."""
    y = build.norm(y, home) if build.style.norms_behind else y
    return build.graph.over(y) if build.shape.scaled_residual else y


def _attention(build: Build, x: Tensor, index: int) -> Tensor:
    if build.shape.latent is not None:
        return latent_attention(build, x, index)
    return (gated_attention if build.style.mixer == "delta" else attention)(build, x, index)


def _feed_forward(build: Build, x: Tensor, index: int) -> Tensor:
    block, home, graph = build.shape.blocks[index], build.homes.blocks[index], build.graph
    if not block.expert_width:
        return feed_forward(build, x, block.feed_forward, home, gated=block.gated, fused=block.fused_gate)
    y = routed_experts(build, x, index)
    if block.shared_width:
        shared = feed_forward(build, x, block.shared_width, home, gated=block.expert_gated)
        if build.style.shared_gate:
            gate = build.linear(x, 1, home)
            shared = graph.over(shared, graph.over(gate) if build.style.mixer else graph.over(graph.over(gate), gate))
        y = graph.over(y, shared)
    return y
