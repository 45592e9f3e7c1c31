"""Tensors of a compute graph and the order in which they are computed, as ggml has them."""

from __future__ import annotations

from math import prod

Shape = tuple[int, int, int, int]
Strides = tuple[float, float, float, float]
"""Bytes from one element to the next, in each dimension; an element of a quantised cache is a fraction of a byte."""

F32, F16, I32, I64 = 4, 2, 4, 8
"""Bytes of one element."""


class Tensor:
    """A node, an input, or a tensor that lies elsewhere (a cache): sizes and links only, no data."""

    __slots__ = (
        "children", "fixed", "home", "in_place", "is_kept", "is_seen", "is_view_op", "offset", "origin", "owned",
        "place", "room", "shape", "size_bytes", "sources", "strides", "views",
    )  # fmt: skip

    def __init__(
        self,
        shape: Shape,
        strides: Strides,
        sources: tuple[Tensor, ...] = (),
        *,
        origin: Tensor | None = None,
        home: int | None = None,
        in_place: bool = False,
        fixed: bool = False,
        is_view_op: bool = False,
    ) -> None:
        self.shape, self.strides, self.sources = shape, strides, sources
        self.origin: Tensor | None = origin.origin or origin if origin is not None else None
        """What this is a view of."""
        self.home = home
        """Where it has to be computed: where its weights or its destination lie. None: wherever its neighbours are."""
        self.in_place = in_place
        """The operation can write over one of its sources."""
        self.fixed = fixed
        """It has memory of its own outside of the compute buffer."""
        self.is_view_op = is_view_op
        self.size_bytes = int(strides[3] * shape[3])
        """Without gaps; nobody asks for that of a view."""
        self.place = -1 if home is None else home
        self.is_kept = False
        """Its memory is never given back."""
        self.children = self.views = self.room = self.offset = 0
        self.owned = self.is_seen = False

    @property
    def elements(self) -> int:
        return prod(self.shape)

    def like(self) -> Tensor:
        """A tensor of the same layout, as a copy on another device is: as long as a view reaches, gaps included."""
        copy = Tensor(self.shape, self.strides)
        reach = self.strides[0] + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        copy.size_bytes = int(reach) if self.elements else 0
        return copy


def contiguous(shape: Shape, element_bytes: float) -> Strides:
    """Strides of a tensor without gaps."""
    one = element_bytes * shape[0]
    two = one * shape[1]
    return element_bytes, one, two, two * shape[2]


def shaped(*dims: int) -> Shape:
    """Dimensions, innermost first, filled up with ones."""
    return (*dims, 1, 1, 1)[:4]  # type: ignore[return-value]


class Graph:
    """Collects tensors in the order of computation, and makes them."""

    def __init__(self, host: int) -> None:
        self.host = host
        self.inputs: list[Tensor] = []
        self.nodes: list[Tensor] = []

    def expand(self, *tensors: Tensor) -> None:
        """Put tensors behind all that they are computed from, which comes first (ggml_build_forward_expand)."""
        for tensor in tensors:
            if not tensor.is_seen:
                self._visit(tensor)

    def _visit(self, tensor: Tensor) -> None:
        tensor.is_seen = True
        for source in tensor.sources:
            if not (source.is_seen or source.fixed):
                self._visit(source)
        (self.nodes if tensor.sources else self.inputs).append(tensor)

    def given(self, *dims: int, element_bytes: float = F32) -> Tensor:
        """An input, which is filled on the host."""
        shape = shaped(*dims)
        return Tensor(shape, contiguous(shape, element_bytes), home=self.host)

    def stored(self, *dims: int, home: int, element_bytes: float = F32) -> Tensor:
        """A cache or a state, which lies outside of the compute buffer."""
        shape = shaped(*dims)
        return Tensor(shape, contiguous(shape, element_bytes), home=home, fixed=True)

    def op(
        self,
        dims: tuple[int, ...],
        *sources: Tensor,
        home: int | None = None,
        in_place: bool = False,
        element_bytes: float = F32,
    ) -> Tensor:
        """The result of an operation; `home` where weights take part."""
        shape = shaped(*dims)
        return Tensor(shape, contiguous(shape, element_bytes), sources, home=home, in_place=in_place)

    def over(self, first: Tensor, *others: Tensor, home: int | None = None) -> Tensor:
        """An operation on single elements that can write over its source."""
        return self.op(first.shape, first, *others, home=home, in_place=True)

    def view(self, source: Tensor, dims: tuple[int, ...], strides: tuple[float, ...]) -> Tensor:
        """A part of a tensor. Strides of the outer dimensions may be left out, as in ggml."""
        shape = shaped(*dims)
        full = (source.strides[0], *strides)
        while len(full) < 4:
            full = (*full, full[-1] * shape[len(full) - 1])
        return self._view(source, shape, (full[0], full[1], full[2], full[3]))

    def reshape(self, source: Tensor, *dims: int) -> Tensor:
        shape = shaped(*dims)
        return self._view(source, shape, contiguous(shape, source.strides[0]))

    def permute(self, source: Tensor, a: int, b: int, c: int, d: int) -> Tensor:
        """Dimension 0 becomes dimension `a`, and so on (ggml_permute)."""
        shape, strides = dict[int, int](), dict[int, float]()
        for old, new in enumerate((a, b, c, d)):
            shape[new], strides[new] = source.shape[old], source.strides[old]
        return self._view(
            source, (shape[0], shape[1], shape[2], shape[3]), (strides[0], strides[1], strides[2], strides[3])
        )

    def write(self, into: Tensor, *sources: Tensor) -> Tensor:
        """Write into a cache or a state; the result is that destination."""
        home = (into.origin or into).home
        return Tensor(into.shape, into.strides, sources, origin=into, home=home)

    def _view(self, source: Tensor, shape: Shape, strides: Strides) -> Tensor:
        home = (source.origin or source).home if (source.origin or source).fixed else None
        return Tensor(shape, strides, (source,), origin=source, home=home, is_view_op=True)
