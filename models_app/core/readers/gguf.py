"""GGUF headers, versions 2 and 3 (headers.md 1 to 9, 14, 15).

The source is any seekable byte stream, of which only the beginning may be at hand; the data section is never read.
Whatever the bytes are, the answer is a Header or a HeaderError.
"""

from __future__ import annotations

import math
import struct
from typing import BinaryIO

from models_app.core.catalog import Header
from models_app.core.errors import MalformedHeader, NotThisFormat, TruncatedHeader, UnsupportedVersion
from models_app.core.readers import limits
from models_app.core.readers._gguf_fields import build_header, split_facts
from models_app.core.readers._gguf_keys import KeyValues, KeyWalk
from models_app.core.readers._names import compact_name, printable
from models_app.core.readers._window import Window
from models_app.core.readers.tensor_scan import DataExtent, TensorScan
from models_app.core.units import pad

MAGIC = b"GGUF"
VERSIONS = (2, 3)
_LFS_POINTER = b"version https://git-lfs"
_LEGACY_MAGICS = (b"lmgg", b"fmgg", b"tjgg", b"algg")
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_INFOS = tuple(struct.Struct(f"<{dimensions}QIQ") for dimensions in range(limits.MAX_DIMENSIONS + 1))
_SHORT_NAME_BYTES = 256
_SHORT_INFO_BYTES = 8 + _SHORT_NAME_BYTES + 4 + _INFOS[-1].size
_SHAPES = tuple(struct.Struct(f"<{dimensions}Q") for dimensions in range(limits.MAX_DIMENSIONS + 1))


TensorLine = tuple[bytes, tuple[int, ...], int, int]
"""Name, shape innermost first, type id, offset in the data section."""


class GgufModel:
    """A model that is read file by file: a single one, or the shards of a set in the order of their numbers."""

    def __init__(self) -> None:
        self._keys = KeyValues()
        self._scan = TensorScan()
        self._names: set[bytes | str | int] = set()
        self._size_bytes = 0
        self._path = ""
        self._part_count = 0
        self._data_complete: bool | None = True

    def add(self, stream: BinaryIO, size_bytes: int, path: str = "") -> None:
        """Read the next file. Keys count from the first one, tensors and sizes from all. Raises HeaderError;
        a TruncatedHeader carries the partial record once the key-value section was complete."""
        window = Window(stream, size_bytes)
        tensor_count, key_count = _counts(window)
        keys = KeyWalk(window).run(key_count)
        if self._part_count == 0:
            self._keys, self._path = keys, path
        self._size_bytes += size_bytes
        self._part_count += 1
        try:
            extent = self._read_tensors(window, tensor_count)
        except TruncatedHeader as error:
            error.partial = self.header()
            raise
        self._judge(extent, pad(window.offset, keys.alignment), size_bytes)

    def header(self) -> Header:
        """The record of everything read so far."""
        return build_header(
            self._keys,
            self._scan,
            path=self._path,
            file_size_bytes=self._size_bytes,
            data_complete=self._data_complete,
        )

    def set_header(self) -> Header:
        """The record of a split set; missing shards are flagged by `data_complete` false and a warning."""
        split = split_facts(self._keys)
        missing_count = max(split.parts, 1) - self._part_count
        if split.number > 0:
            self._keys.warn("the first part of the set, which carries the facts, is missing")
        if missing_count > 0:
            verb = "is" if missing_count == 1 else "are"
            self._keys.warn(f"{missing_count:,} of {split.parts:,} parts of the set {verb} missing")
            self._data_complete = False
        elif split.tensors not in (0, self._scan.count):
            self._keys.warn(f"the set promises {split.tensors:,} tensors and holds {self._scan.count:,}")
            self._data_complete = False
        return self.header()

    def _read_tensors(self, window: Window, count: int) -> DataExtent:
        extent = DataExtent()
        for _ in range(count):
            start = window.offset
            raw_name, shape, type_id, offset = _short_info(window) or _info(window)
            elements = math.prod(shape)
            if elements > limits.MAX_INTEGER or (elements == 0 and max(shape) > limits.MAX_INTEGER):
                raise MalformedHeader("dimension", "a tensor with more elements than any file can hold", offset=start)
            name = compact_name(raw_name)
            if name in self._names:
                raise MalformedHeader(
                    "duplicate_tensor", f"the tensor {printable(raw_name)!r} occurs twice", offset=start
                )
            self._names.add(name)
            extent.add(offset, self._scan.add(raw_name.decode("utf-8", "replace"), shape, type_id, elements))
        return extent

    def _judge(self, extent: DataExtent, data_start: int, size_bytes: int) -> None:
        complete = extent.is_complete(data_start, size_bytes)
        if complete is False:
            self._keys.warn("the file ends before its last tensor: an interrupted download")
        if extent.overlaps():
            self._keys.warn("tensors overlap in the data section; no engine loads such a file")
        if self._data_complete is not False and complete is not True:
            self._data_complete = complete


def read_gguf(stream: BinaryIO, file_size_bytes: int, path: str = "") -> Header:
    """Facts of one file. `file_size_bytes` is the size of the whole file, however much of it the stream holds.

    Raises HeaderError; see `GgufModel.add`.
    """
    model = GgufModel()
    model.add(stream, file_size_bytes, path)
    return model.header()


def _counts(window: Window) -> tuple[int, int]:
    """Magic, version and the two counts, each judged as soon as it is read."""
    if window.available == 0 and window.full_size == 0:
        raise NotThisFormat("empty", "the file is empty")
    _check_magic(window)
    version = window.u32()
    if version and version & 0xFFFF == 0:
        raise UnsupportedVersion("big_endian", "written in the other byte order", offset=4, version=version)
    if version not in VERSIONS:
        raise UnsupportedVersion("version", f"GGUF version {version} is not supported", offset=4, version=version)
    tensor_count = window.u64()
    if tensor_count > limits.MAX_TENSORS:
        raise MalformedHeader("tensor_count", f"the header claims {tensor_count:,} tensors", offset=8)
    key_count = window.u64()
    if key_count > limits.MAX_KEYS:
        raise MalformedHeader("kv_count", f"the header claims {key_count:,} keys", offset=16)
    return tensor_count, key_count


def _check_magic(window: Window) -> None:
    start = window.take(min(window.available, len(MAGIC)))
    if not MAGIC.startswith(start):
        rest = window.take(min(window.available, len(_LFS_POINTER)) - len(start))
        hint = "legacy-ggml" if start in _LEGACY_MAGICS else "git-lfs" if start + rest == _LFS_POINTER else ""
        reason = {
            "": "not a GGUF file",
            "git-lfs": "a Git LFS pointer, not the file itself: run git lfs pull",
            "legacy-ggml": "an old ggml file, which no current engine loads",
        }[hint]
        raise NotThisFormat("not_gguf", reason, hint=hint)
    if len(start) < len(MAGIC):
        window.run_out(len(MAGIC))


def _short_info(window: Window) -> TensorLine | None:
    """A tensor info of usual size in one look; None when it must be read field by field."""
    view = window.view(_SHORT_INFO_BYTES)
    if view is None:
        return None
    buffer, pos = view
    length: int = _U64.unpack_from(buffer, pos)[0]
    if length > _SHORT_NAME_BYTES:
        return None
    end = pos + 8 + length
    dimensions: int = _U32.unpack_from(buffer, end)[0]
    if dimensions > limits.MAX_DIMENSIONS:
        return None
    layout = _INFOS[dimensions]
    *shape, type_id, offset = layout.unpack_from(buffer, end + 4)
    window.skip(8 + length + 4 + layout.size)
    return buffer[pos + 8 : end], tuple(shape), type_id, offset


def _info(window: Window) -> TensorLine:
    """A tensor info field by field, so that an error names the field. A name may be empty, and longer than llama.cpp
    allows: diffusion files have such."""
    start = window.offset
    length = window.u64()
    if length > limits.MAX_NAME_BYTES:
        raise MalformedHeader("key_length", f"a tensor name of {length:,} bytes", offset=start)
    if length > window.full_size:
        raise MalformedHeader("string_length", f"a tensor name of {length:,} bytes in a smaller file", offset=start)
    name = window.take(length)
    start = window.offset
    dimensions = window.u32()
    if dimensions > limits.MAX_DIMENSIONS:
        raise MalformedHeader("n_dims", f"a tensor with {dimensions:,} dimensions", offset=start)
    shape = window.u64s(_SHAPES[dimensions])
    return name, shape, window.u32(), window.u64()
