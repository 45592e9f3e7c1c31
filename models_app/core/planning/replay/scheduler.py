"""ggml's scheduler: which place computes which node, and what is copied between places (ggml-backend.cpp)."""

from __future__ import annotations

from collections.abc import Iterable

from models_app.core.planning.replay.allocator import peaks
from models_app.core.planning.replay.tensors import Graph, Tensor


def compute_buffers(graph: Graph, copies: int) -> list[int]:
    """Bytes of the compute buffers of all places, the host's last. `copies` of what crosses between devices are kept:
    more than one where devices work as a pipeline.
    """
    _place(graph)
    leaves, nodes = _with_copies(graph, copies)
    return peaks(leaves, nodes, graph.host + 1)


def _place(graph: Graph) -> None:
    """Nodes without a home join a neighbour: a device's if there is one before them, then behind them."""
    work = [node for node in graph.nodes if not node.is_view_op]
    for may_be_host in (False, True):
        for order in (work, work[::-1]):
            _spread(order, -1 if may_be_host else graph.host)
    for node in graph.nodes:
        if node.is_view_op:
            node.place = (node.origin or node).place


def _spread(nodes: Iterable[Tensor], skipped: int) -> None:
    current = -1
    for node in nodes:
        if node.place < 0:
            node.place = current
        else:
            current = -1 if node.place == skipped else node.place


def _with_copies(graph: Graph, copies: int) -> tuple[list[Tensor], list[Tensor]]:
    """The graph with a copy of every source that lies elsewhere, made at the start of the stretch that reads it."""
    made: dict[tuple[int, int], Tensor] = {}
    stretches: list[tuple[list[Tensor], list[Tensor]]] = []
    place, crossing = -1, list[Tensor]()
    for node in graph.nodes:
        if not node.is_view_op and node.place != place:
            place, crossing = node.place, []
            stretches.append((crossing, []))
        if not stretches:
            stretches.append((crossing, []))
        if not node.is_view_op and any(source.place != place for source in node.sources):
            node.sources = tuple(_copied(source, place, made, crossing) for source in node.sources)
        stretches[-1][1].append(node)
    nodes, spare = [], list[Tensor]()
    for crossing, computed in stretches:
        for source in crossing:
            reader = next(node.place for node in computed if not node.is_view_op)
            copy = made[id(source), reader]
            # Nothing but a reader of the source, which so lives until the copy is made.
            nodes += [Tensor(source.shape, source.strides, (source,), fixed=True), copy]
            if copies > 1:
                spare += _kept(copy, copies)
        nodes += computed
    if copies == 1:
        return graph.inputs, nodes
    return [tensor for leaf in graph.inputs for tensor in _kept(leaf, copies)] + spare, nodes


def _copied(source: Tensor, place: int, made: dict[tuple[int, int], Tensor], crossing: list[Tensor]) -> Tensor:
    if source.place == place:
        return source
    copy = made.get((id(source), place))
    if copy is None:
        copy = made[id(source), place] = source.like()
        copy.place = place
        crossing.append(source)
    return copy


def _kept(tensor: Tensor, copies: int) -> list[Tensor]:
    """A tensor and its further copies, none of which is ever written over."""
    all_of_them = [tensor, *(tensor.like() for _ in range(copies - 1))]
    for one in all_of_them:
        one.place, one.is_kept = tensor.place, True
    return all_of_them
