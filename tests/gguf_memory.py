"""GGUF heads in memory, read back with the product's own reader."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Mapping

from models_app.core.catalog import Header
from models_app.core.readers.gguf import read_gguf
from tests.zoo import zoo

Tensor = tuple[str, tuple[int, ...], str]
"""Name, shape innermost first, type name."""
ALIGNMENT = 32


def header_of(kv: Mapping[str, object], tensors: Iterable[Tensor] = (), path: str = "model.gguf") -> Header:
    """The header of a model with these keys and tensors, whose data is only claimed to be there."""
    listed = list(tensors)
    head = [b"GGUF", struct.pack("<IQQ", 3, len(listed), len(kv))]
    head += [zoo._string(key) + zoo._value(value) for key, value in kv.items()]
    offset = 0
    for name, shape, kind in listed:
        head.append(
            zoo._string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, zoo.TYPES[kind][0], offset)
        )
        offset += -(-zoo.tensor_bytes(kind, shape) // ALIGNMENT) * ALIGNMENT
    raw = b"".join(head)
    raw += bytes(-len(raw) % ALIGNMENT)
    return read_gguf(io.BytesIO(raw), len(raw) + offset, path)
