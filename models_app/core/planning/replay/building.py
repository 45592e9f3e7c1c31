"""Parts that the graphs of many architectures share (llama-graph.cpp): input, norms, attention, feed-forwards.

Biases, and norms and positions of queries and keys, are left out: they are computed in place.
"""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.catalog import Launch
from models_app.core.planning.geometry import Geometry
from models_app.core.planning.kv_types import QUANTISED_TYPES, element_bytes
from models_app.core.planning.replay.shapes import ModelShape
from models_app.core.planning.replay.styles import STYLES
from models_app.core.planning.replay.tensors import F16, F32, I32, I64, Graph, Tensor, contiguous

VALUE_TURN = 64
"""Values of a quantised cache are turned in pieces of so many."""


class Homes(NamedTuple):
    """Which place holds what; devices are counted from 0, the host comes after them."""

    blocks: tuple[int, ...]
    experts: tuple[int, ...]
    output: int
    host: int


class Build:
    """A graph in the making, with its model and its launch."""

    def __init__(self, shape: ModelShape, launch: Launch, geo: Geometry, homes: Homes, output_rows: int) -> None:
        self.style = STYLES[shape.architecture]
        self.shape, self.launch, self.geo, self.homes = shape, launch, geo, homes
        self.graph = Graph(homes.host)
        self.tokens = geo.tokens
        self.output_ids = self.graph.given(output_rows, element_bytes=I32)
        self.positions = self.graph.given(self.style.positions_per_token * self.tokens, element_bytes=I32)
        self.query_scales = self.graph.given(1, 1, self.tokens)
        self.input: Tensor | None = None
        """Where it is wider than the embedding: what early blocks add more rows of."""
        self._caches: dict[bool, CacheInputs] = {}
        self.state_ids = self.graph.given(geo.slots, element_bytes=I32)
        self.own_state_ids = self.graph.view(self.state_ids, (geo.slots,), ())
        self.other_state_ids = self.graph.view(self.state_ids, (geo.slots - 1,), ())

    @staticmethod
    def tokens_of(x: Tensor) -> int:
        """Rows of activations; fewer than those of the micro-batch behind the choice of the wanted ones."""
        return x.elements // x.shape[0]

    def linear(self, x: Tensor, rows: int, home: int) -> Tensor:
        """A product with a matrix of weights."""
        return self.graph.op((rows, *x.shape[1:]), x, home=home)

    def norm(self, x: Tensor, home: int) -> Tensor:
        """A norm, and its weights. Those that also move the mean are not made in place."""
        normed = self.graph.op(x.shape, x, in_place=not self.style.layer_norms)
        return self.graph.over(normed, home=home)

    def placed(self, x: Tensor) -> Tensor:
        """Queries or keys with their positions put in."""
        return self.graph.over(x, self.positions)

    def cache_inputs(self, sliding: bool) -> CacheInputs:
        if sliding not in self._caches:
            self._caches[sliding] = _cache_inputs(self, sliding)
        return self._caches[sliding]

    def wanted_rows(self, x: Tensor) -> Tensor:
        """The rows that logits are computed for."""
        return self.graph.op((x.shape[0], self.output_ids.shape[0]), x, self.output_ids)


class Widening(NamedTuple):
    """A matrix that takes results of attention out of the space of a compressed cache."""

    length: int
    home: int


class CacheInputs(NamedTuple):
    """Inputs of attention over one kind of cache."""

    key_ids: Tensor
    value_ids: Tensor
    mask: Tensor
    key_turn: Tensor | None
    value_turn: Tensor | None
    cells: int


def _cache_inputs(build: Build, sliding: bool) -> CacheInputs:
    launch, geo, graph = build.launch, build.geo, build.graph
    cells, tokens = geo.window_cells if sliding else geo.cells, build.tokens
    blocks = [block for block in build.shape.blocks if block.attends and block.sliding == sliding]
    values = 1 if launch.flash_attn else max(block.kv_heads * block.value_length for block in build.shape.blocks)
    return CacheInputs(
        key_ids=graph.given(tokens, element_bytes=I64),
        value_ids=graph.given(tokens * values, element_bytes=I64),
        mask=graph.given(cells, tokens // geo.streams, 1, geo.streams, element_bytes=F16 if launch.flash_attn else F32),
        key_turn=_turn(build, launch.type_k, {block.key_length for block in blocks}, smallest=False),
        value_turn=_turn(build, launch.type_v, {block.value_length for block in blocks}, smallest=True),
        cells=cells,
    )


def _turn(build: Build, cache_type: str, lengths: set[int], *, smallest: bool) -> Tensor | None:
    """The matrix that keys or values of a quantised cache are turned with."""
    if cache_type not in QUANTISED_TYPES or len(lengths) != 1:
        return None
    length, size = lengths.pop(), VALUE_TURN
    if length % size:
        return None
    while not smallest and length % (2 * size) == 0:
        size *= 2
    return build.graph.given(size, size)


def embedded_input(build: Build) -> Tensor:
    """Tokens, ready embeddings, or a mix of both: llama.cpp keeps all three in its graph."""
    graph, embedding, tokens, host = build.graph, build.shape.embedding, build.tokens, build.homes.host
    width = embedding * (1 + build.shape.stacked_inputs)
    x = _token_rows(build, width)
    ready = graph.given(width, tokens)
    copied = graph.op((width, tokens), graph.given(width, tokens))
    mixed = graph.write(copied, _token_rows(build, width), graph.given(tokens, element_bytes=I64), copied)
    graph.expand(x, ready, mixed)
    if width > embedding:
        x = build.input = graph.view(x, (embedding, tokens), (x.strides[1],))
    if build.style.input_scale == "rows":
        x = graph.over(x, graph.given(1, tokens))
    elif build.style.input_scale == "whole" or build.shape.scaled_input:
        x = graph.over(x)
    graph.expand(x)
    if build.style.position_table:
        x = graph.over(x, graph.op((embedding, tokens), build.positions, home=host))
    return build.norm(x, build.homes.blocks[0]) if build.style.input_norm else x


def _token_rows(build: Build, width: int) -> Tensor:
    """Rows of the embedding, filled up where the input is wider than that."""
    graph, embedding, tokens = build.graph, build.shape.embedding, build.tokens
    rows = graph.op((embedding, tokens), graph.given(tokens, element_bytes=I32), home=build.homes.host)
    return graph.op((width, tokens), rows) if width > embedding else rows


def attention(build: Build, x: Tensor, index: int) -> Tensor:
    """Attention of one block over its cache. Queries, keys and values are products of their own, or parts of one."""
    block, home, tokens, graph = build.shape.blocks[index], build.homes.blocks[index], build.tokens, build.graph
    heads = (block.heads, block.kv_heads, block.kv_heads)
    lengths = (block.key_length, block.key_length, block.value_length)
    if build.style.fused_attention:
        joined = build.linear(x, sum(n * length for n, length in zip(heads, lengths, strict=True)), home)
        q, k, v = (
            graph.view(joined, (length, n, tokens), (F32 * length, joined.strides[1]))
            for n, length in zip(heads, lengths, strict=True)
        )
    else:
        q, k, v = (
            graph.reshape(build.linear(x, n * length, home), length, n, tokens)
            for n, length in zip(heads, lengths, strict=True)
        )
    if build.style.query_norms:
        q, k = build.norm(q, home), build.norm(k, home)
    if build.shape.positions and _has_positions(build, index):
        q, k = build.placed(q), build.placed(k)
        scaled = build.shape.scaled_queries
    else:
        scaled = build.style.scaled_queries
    q = graph.over(q, build.query_scales) if scaled else q
    result = cached_attention(build, q, k, v, index)
    if build.style.gated_attention:
        result = graph.over(result, graph.over(build.linear(x, result.shape[0], home)))
    return build.linear(result, build.shape.embedding, home)


def _has_positions(build: Build, index: int) -> bool:
    blocks = build.shape.blocks
    match build.style.positions:
        case "sliding":
            return blocks[index].sliding or not any(block.sliding for block in blocks)
        case "sliding or dense":
            return blocks[index].sliding or not blocks[index].expert_width
        case "all but fourths":
            return (index + 1) % 4 != 0
        case "all but firsts":
            return index % 4 != 0
        case where:
            return where == "all"


def cached_attention(build: Build, q: Tensor, k: Tensor, v: Tensor, index: int) -> Tensor:
    """From queries, keys and values as (length, heads, tokens) to the result of all heads side by side."""
    graph, block, home = build.graph, build.shape.blocks[index], build.homes.blocks[index]
    inputs = build.cache_inputs(block.sliding)
    if inputs.key_turn is not None:
        q, k = turned(graph, q, inputs.key_turn), turned(graph, k, inputs.key_turn)
    if inputs.value_turn is not None:
        v = turned(graph, v, inputs.value_turn)
    graph.expand(q, v, k)
    keys = stored(build, k, inputs.key_ids, inputs.cells, home, build.launch.type_k)
    values = stored(build, v, inputs.value_ids, inputs.cells, home, build.launch.type_v)
    result = attended(build, q, keys, values, inputs, None)
    return result if inputs.value_turn is None else turned(graph, result, inputs.value_turn)


def turned(graph: Graph, x: Tensor, turn: Tensor) -> Tensor:
    """Queries, keys, values or results for a quantised cache."""
    size = turn.shape[0]
    dims = size, x.elements // size
    flat = graph.reshape(x, *dims) if x.strides == contiguous(x.shape, F32) else graph.op(dims, x)
    return graph.reshape(graph.op(flat.shape, turn, flat), *x.shape)


def stored(build: Build, made: Tensor, ids: Tensor, cells: int, home: int, cache_type: str) -> Tensor:
    """The cache of keys or values of one block, with those just made written into it."""
    graph = build.graph
    length, heads, streams = made.shape[0], made.shape[1], build.geo.streams
    cache = graph.stored(length, heads, cells, streams, home=home, element_bytes=element_bytes(cache_type))
    flat = graph.view(made, (length * heads, build.tokens), (made.strides[2],))
    graph.expand(graph.write(cache, flat, ids))
    return cache


def attended(
    build: Build, q: Tensor, keys: Tensor, values: Tensor, inputs: CacheInputs, widen: Widening | None
) -> Tensor:
    """The result of attention (build_attn_mha), all heads of a token side by side."""
    graph, streams, tokens = build.graph, build.geo.streams, build.tokens
    per_stream, heads = tokens // streams, q.shape[1]
    q = graph.view(q, (q.shape[0], heads, per_stream, streams), (q.strides[1], q.strides[2], q.strides[2] * per_stream))
    q, k, v = (graph.permute(x, 0, 2, 1, 3) for x in (q, keys, values))
    length = values.shape[0]
    if build.launch.flash_attn:
        result = graph.op((length, heads, per_stream, streams), q, k, v, inputs.mask)
        if widen is not None:
            result = graph.permute(result, 0, 2, 1, 3)
            result = graph.op((widen.length, *result.shape[1:]), result, home=widen.home)
            length = widen.length
            result = graph.permute(result, 0, 2, 1, 3)
            result = graph.op(result.shape, result)
        result = graph.reshape(result, length * heads, tokens)
    else:
        scores = graph.over(graph.op((inputs.cells, per_stream, heads, streams), k, q), inputs.mask)
        if widen is not None:
            # Rows of a compressed cache are not stored transposed, as those of values are.
            rows = graph.permute(v, 1, 0, 2, 3)
            v = graph.op(rows.shape, rows, element_bytes=v.strides[0])
        result = graph.op((length, per_stream, heads, streams), v, scores)
        if widen is not None:
            length = widen.length
            result = graph.op((length, *result.shape[1:]), result, home=widen.home)
        result = graph.op((length * heads, tokens), graph.permute(result, 0, 2, 1, 3))
    graph.expand(result)
    return result


def feed_forward(build: Build, x: Tensor, width: int, home: int, *, gated: bool, fused: bool = False) -> Tensor:
    """A dense feed-forward, or a shared expert."""
    if fused:
        both = build.linear(x, 2 * width, home)
        product = build.graph.op((width, *x.shape[1:]), both)
    else:
        up = build.linear(x, width, home)
        product = build.graph.op(up.shape, build.linear(x, width, home), up) if gated else build.graph.over(up)
    return build.linear(product, build.shape.embedding, home)
