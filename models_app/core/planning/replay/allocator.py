"""ggml's allocator: best fit, over the graph in the order of computation (ggml-alloc.c)."""

from __future__ import annotations

from collections.abc import Iterable

from models_app.core.planning.replay.tensors import Tensor
from models_app.core.units import pad

ALIGNMENT_BYTES = 32
ENDLESS = 1 << 62


class Room:
    """The compute buffer of one place: free blocks in the order of their offsets; the last one has no end."""

    def __init__(self) -> None:
        self._free = [[0, ENDLESS]]
        self.peak_bytes = 0

    def take(self, size: int) -> int:
        """Offset of the smallest free block that is large enough; of several of that size, the last."""
        best, best_size = -1, ENDLESS
        for index in range(len(self._free) - 1):
            if size <= self._free[index][1] <= best_size:
                best, best_size = index, self._free[index][1]
        block = self._free[best]
        offset = block[0]
        block[0] += size
        block[1] -= size
        if not block[1]:
            del self._free[best]
        self.peak_bytes = max(self.peak_bytes, offset + size)
        return offset

    def give_back(self, offset: int, size: int) -> None:
        """Free blocks that touch become one."""
        free = self._free
        for index, block in enumerate(free):
            if block[0] + block[1] == offset:
                block[1] += size
                self._join(index)
                return
            if offset + size == block[0]:
                block[0] = offset
                block[1] += size
                if index:
                    self._join(index - 1)
                return
        index = next((index for index, block in enumerate(free) if block[0] >= offset), len(free))
        free.insert(index, [offset, size])

    def _join(self, index: int) -> None:
        free = self._free
        if index + 1 < len(free) and free[index][0] + free[index][1] == free[index + 1][0]:
            free[index][1] += free[index + 1][1]
            del free[index + 1]


def peaks(leaves: Iterable[Tensor], nodes: list[Tensor], places: int) -> list[int]:
    """Bytes of the compute buffers of all places, host last, for tensors that a scheduler has placed."""
    rooms = [Room() for _ in range(places)]
    for leaf in leaves:
        _allocate(leaf, rooms)
    for node in nodes:
        if node.origin is not None:
            node.origin.views += 1
        for source in node.sources:
            source.children += 1
    for node in nodes:
        for source in node.sources:
            if not source.owned:
                _allocate(source, rooms)
        _allocate(node, rooms)
        for source in node.sources:
            source.children -= 1
            if not source.children and not source.views:
                _let_go(source, rooms)
    return [room.peak_bytes for room in rooms]


def _allocate(tensor: Tensor, rooms: list[Room]) -> None:
    if tensor.owned or tensor.fixed or tensor.origin is not None:
        return
    tensor.owned = True
    if tensor.in_place and any(_takes_over(tensor, source) for source in tensor.sources):
        return
    tensor.room = tensor.place
    tensor.offset = rooms[tensor.place].take(pad(tensor.size_bytes, ALIGNMENT_BYTES))


def _takes_over(tensor: Tensor, source: Tensor) -> bool:
    """The tensor is written over a source that nothing else needs; views are never written over."""
    if not source.owned or source.is_kept or source.children != 1 or source.views:
        return False
    if source.shape != tensor.shape or source.strides != tensor.strides:
        return False
    tensor.room, tensor.offset = source.room, source.offset
    source.owned = False
    return True


def _let_go(tensor: Tensor, rooms: list[Room]) -> None:
    root = tensor
    if tensor.origin is not None:
        root = tensor.origin
        root.views -= 1
        if root.views or root.children:
            return
    if root.owned and not root.is_kept:
        rooms[root.room].give_back(root.offset, pad(root.size_bytes, ALIGNMENT_BYTES))
        root.owned = False
