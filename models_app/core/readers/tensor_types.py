"""Tensor types of GGUF files: one table with id, name, block and bytes (headers.md 2).

Sizes are those of the engine examined there (GGUF 3, types 0 to 42). Ids that are missing here were removed from the
format for good, or do not exist yet: such a tensor has no name and no size, and that is never an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class TensorType(NamedTuple):
    """`block_bytes` bytes hold `block` elements."""

    id: int
    name: str
    block: int
    block_bytes: int


TENSOR_TYPES: tuple[TensorType, ...] = (
    TensorType(0, "F32", 1, 4),
    TensorType(1, "F16", 1, 2),
    TensorType(2, "Q4_0", 32, 18),
    TensorType(3, "Q4_1", 32, 20),
    TensorType(6, "Q5_0", 32, 22),
    TensorType(7, "Q5_1", 32, 24),
    TensorType(8, "Q8_0", 32, 34),
    TensorType(9, "Q8_1", 32, 36),
    TensorType(10, "Q2_K", 256, 84),
    TensorType(11, "Q3_K", 256, 110),
    TensorType(12, "Q4_K", 256, 144),
    TensorType(13, "Q5_K", 256, 176),
    TensorType(14, "Q6_K", 256, 210),
    TensorType(15, "Q8_K", 256, 292),
    TensorType(16, "IQ2_XXS", 256, 66),
    TensorType(17, "IQ2_XS", 256, 74),
    TensorType(18, "IQ3_XXS", 256, 98),
    TensorType(19, "IQ1_S", 256, 50),
    TensorType(20, "IQ4_NL", 32, 18),
    TensorType(21, "IQ3_S", 256, 110),
    TensorType(22, "IQ2_S", 256, 82),
    TensorType(23, "IQ4_XS", 256, 136),
    TensorType(24, "I8", 1, 1),
    TensorType(25, "I16", 1, 2),
    TensorType(26, "I32", 1, 4),
    TensorType(27, "I64", 1, 8),
    TensorType(28, "F64", 1, 8),
    TensorType(29, "IQ1_M", 256, 56),
    TensorType(30, "BF16", 1, 2),
    TensorType(34, "TQ1_0", 256, 54),
    TensorType(35, "TQ2_0", 256, 66),
    TensorType(39, "MXFP4", 32, 17),
    TensorType(40, "NVFP4", 64, 36),
    TensorType(41, "Q1_0", 128, 18),
    TensorType(42, "Q2_0", 64, 18),
)
BY_ID = {kind.id: kind for kind in TENSOR_TYPES}


def tensor_bytes(type_id: int, shape: Iterable[int]) -> int | None:
    """Bytes of a tensor, None for an unknown type. Rows that are no whole number of blocks are floored, not refused."""
    kind = BY_ID.get(type_id)
    if kind is None:
        return None
    return math.prod(shape) // kind.block * kind.block_bytes
