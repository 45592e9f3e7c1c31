"""safetensors headers: a length and one JSON object (headers.md 11).

Only names, shapes and dtypes are used, and nothing behind the header is read, so the cost does not depend on the size
of the file. Shapes in a record are innermost first, as everywhere here; the file has them outermost first.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from models_app.core.catalog import Header, WeightTable
from models_app.core.errors import MalformedHeader, NotThisFormat, TruncatedHeader
from models_app.core.readers import limits
from models_app.core.readers._json_pull import JsonPull, JsonPullError
from models_app.core.readers._names import compact_name
from models_app.core.readers.quant_label import dominant_type

_LENGTH_BYTES = 8
_LFS_START = b"version "
_METADATA = "__metadata__"
_MAX_RECORD_CHARACTERS = 1 << 14
_MAX_DIMENSIONS = 64
_RECORD = re.compile(
    r'\{\s*"dtype"\s*:\s*"(\w{1,32})"\s*,\s*"shape"\s*:\s*\[([\d,\s]{0,200})\]\s*,'
    r'\s*"data_offsets"\s*:\s*\[\s*\d{1,19}\s*,\s*(\d{1,19})\s*\]\s*\}',
    re.ASCII,
)
"""A record as every writer in use spells it; others go through the decoder."""
_DTYPE_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}


class TensorRecord(NamedTuple):
    """One tensor as the file states it: `shape` outermost first, `end` of its bytes in the data section."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    end: int = 0


def header_length(stream: BinaryIO, file_size_bytes: int) -> int:
    """Bytes of the JSON object, which starts at byte 8. Leaves the stream there. Raises HeaderError."""
    available = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    start = stream.read(_LENGTH_BYTES)
    if not start and file_size_bytes == 0:
        raise NotThisFormat("empty", "the file is empty")
    if len(start) < _LENGTH_BYTES:
        raise _truncated(len(start), _LENGTH_BYTES, file_size_bytes)
    length = int.from_bytes(start, "little")
    if not 0 < length <= limits.MAX_SAFETENSORS_HEADER_BYTES:
        hint = "git-lfs" if start == _LFS_START else ""
        reason = "a Git LFS pointer, not the file itself" if hint else f"a header of {length:,} bytes"
        raise NotThisFormat("header_length", reason, hint=hint)
    if _LENGTH_BYTES + length > available:
        raise _truncated(available, _LENGTH_BYTES + length, file_size_bytes)
    return length


def iter_tensors(stream: BinaryIO, header_bytes: int) -> Iterator[TensorRecord]:
    """The tensors of a header in file order; a member that is no proper record is left out. Raises HeaderError."""
    pull = JsonPull(stream, header_bytes)
    seen: set[bytes | str | int] = set()
    try:
        for name in pull.members():
            key = compact_name(name)
            if key in seen:
                raise MalformedHeader(
                    "duplicate_tensor", f"the tensor {name[:80]!r} occurs twice", offset=_LENGTH_BYTES
                )
            seen.add(key)
            if len(seen) > limits.MAX_TENSORS:
                raise MalformedHeader("tensor_count", "more tensors than any model has", offset=_LENGTH_BYTES)
            if name == _METADATA:
                pull.skip()
            elif (record := _record(pull, name)) is not None:
                yield record
        pull.finish()
    except JsonPullError as error:
        offset = _LENGTH_BYTES + pull.bytes_read
        raise NotThisFormat("not_safetensors", f"the header is no JSON object: {error}", offset=offset) from error


def read_safetensors(stream: BinaryIO, file_size_bytes: int, path: str = "") -> Header:
    """Facts of one file: shapes for the component pool, sums, and whether the data is all there. Raises HeaderError."""
    header_bytes = header_length(stream, file_size_bytes)
    shapes: dict[str, tuple[int, ...]] = {}
    dtype_bytes: dict[str, int] = {}
    elements = data_end = 0
    for record in iter_tensors(stream, header_bytes):
        count = math.prod(record.shape)
        if len(shapes) < limits.MAX_KEPT_SHAPES and len(record.name) <= limits.MAX_EXTRA_KEY_BYTES:
            shapes[record.name] = record.shape[::-1]
        dtype_bytes[record.dtype] = dtype_bytes.get(record.dtype, 0) + count * _DTYPE_BITS.get(record.dtype, 0) // 8
        elements += count
        data_end = max(data_end, record.end)
    data_complete = _LENGTH_BYTES + header_bytes + data_end <= file_size_bytes
    total_bytes = sum(dtype_bytes.values())
    known = total_bytes <= limits.MAX_INTEGER and _DTYPE_BITS.keys() >= dtype_bytes.keys()
    return Header(
        format="safetensors",
        path=path,
        file_size_bytes=file_size_bytes,
        param_count=min(elements, limits.MAX_INTEGER),
        quant_label=dominant_type(dict(sorted(dtype_bytes.items()))) if known else "",
        data_complete=data_complete,
        weights=WeightTable(total_bytes=total_bytes if known else 0, complete=known),
        tensor_shapes=MappingProxyType(shapes),
        warnings=() if data_complete else ("the file ends before its last tensor: an interrupted download",),
    )


def _record(pull: JsonPull, name: str) -> TensorRecord | None:
    """The record at the cursor, None when it has the wrong kinds or impossible dimensions."""
    found = pull.match(_RECORD)
    if found is not None:
        text = found[2].strip()
        try:
            shape = [int(part) for part in text.split(",")] if text else []
        except ValueError:
            return None
        return TensorRecord(name, found[1], tuple(shape), int(found[3])) if _is_shape(shape) else None
    value = pull.value(_MAX_RECORD_CHARACTERS)
    if not isinstance(value, dict):
        return None
    dtype, dimensions, offsets = value.get("dtype"), value.get("shape"), value.get("data_offsets")
    if not isinstance(dtype, str) or not isinstance(dimensions, list) or not _is_shape(dimensions):
        return None
    end = offsets[1] if isinstance(offsets, list) and len(offsets) == 2 and _is_shape(offsets) else 0
    return TensorRecord(name, dtype, tuple(dimensions), end)


def _is_shape(dimensions: list[Any]) -> bool:
    return len(dimensions) <= _MAX_DIMENSIONS and all(
        type(dimension) is int and 0 <= dimension <= limits.MAX_INTEGER for dimension in dimensions
    )


def _truncated(available: int, need: int, file_size_bytes: int) -> TruncatedHeader:
    return TruncatedHeader(
        f"the header goes on to byte {need:,}, but only {available:,} bytes are there",
        offset=available,
        need=need,
        retryable=need <= file_size_bytes,
    )
