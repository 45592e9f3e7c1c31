"""From a path to a header: which reader takes a file, what belongs to a split set, and the cache in front."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO

from models_app.core.catalog import Header
from models_app.core.errors import NotThisFormat
from models_app.core.readers import gguf, hugging_face, safetensors
from models_app.core.readers._source import open_regular
from models_app.core.readers.shard_names import shard_siblings

if TYPE_CHECKING:
    from models_app.core.readers.cache import HeaderCache

_SNIFFED_BYTES = 9


@dataclass(frozen=True, slots=True)
class Reader:
    """One file format: its name, the endings that promise it, a look at the first bytes, and the reader itself."""

    name: str
    suffixes: tuple[str, ...]
    matches: Callable[[bytes], bool]
    read: Callable[[BinaryIO, int, str], Header]


def _read_by_name(_stream: BinaryIO, file_size_bytes: int, path: str) -> Header:
    """A `.ggml` file of the segmentation server: known by its name alone, its header is never parsed."""
    if file_size_bytes == 0:
        raise NotThisFormat("empty", "the file is empty")
    return Header(format="ggml", path=path, file_size_bytes=file_size_bytes)


READERS: tuple[Reader, ...] = (
    Reader("gguf", (".gguf",), lambda start: start.startswith(gguf.MAGIC), gguf.read_gguf),
    Reader("safetensors", (".safetensors",), lambda start: start[8:9] == b"{", safetensors.read_safetensors),
    Reader("ggml", (".ggml",), lambda _start: False, _read_by_name),
)
"""Files; a folder always goes through `hugging_face`. An ending outranks content, so that a web page saved under
`x.gguf` is reported as a broken GGUF. The first reader takes what no other recognises."""


def read_header(path: str, *, cache: HeaderCache | None = None) -> Header:
    """Facts of the model at `path`: a file, any shard of a split set (all shards on disk are read), or a folder.

    Raises HeaderError.
    """
    if os.path.isdir(path):
        return hugging_face.read_folder(path)
    shards = shard_siblings(path)
    if shards:
        return read_shard_set(shards, cache=cache)
    return _through(cache, (path,), lambda: _read_file(path))


def read_shard_set(paths: Sequence[str], *, cache: HeaderCache | None = None) -> Header:
    """Facts of a split model from its shards, in the order of their numbers. Missing ones are allowed and flagged.

    Raises HeaderError, with the path of the shard that cannot be read.
    """
    return _through(cache, tuple(paths), lambda: _read_set(paths))


def _through(cache: HeaderCache | None, paths: tuple[str, ...], read: Callable[[], Header]) -> Header:
    return read() if cache is None else cache.read(paths, read)


def _read_file(path: str) -> Header:
    with open_regular(path) as (stream, size_bytes):
        return _reader_for(path, stream).read(stream, size_bytes, path)


def _read_set(paths: Sequence[str]) -> Header:
    model = gguf.GgufModel()
    for path in paths:
        with open_regular(path) as (stream, size_bytes):
            model.add(stream, size_bytes, path)
    return model.set_header()


def _reader_for(path: str, stream: FileIO) -> Reader:
    lower = path.lower()
    for reader in READERS:
        if lower.endswith(reader.suffixes):
            return reader
    start = stream.read(_SNIFFED_BYTES)
    return next((reader for reader in READERS if reader.matches(start)), READERS[0])
