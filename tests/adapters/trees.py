"""Trees of files as vectors describe them (tests/vectors/README.md 4): on disk, headers from the case."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from models_app.core.catalog import Header
from models_app.core.errors import NotThisFormat
from tests.zoo.zoo import write_file

CONTENTS = {"header", "kv", "tensors", "shapes", "json", "text"}


def allow(given: dict[str, Any], *names: str) -> None:
    """Raise for an input field that the adapter does not know."""
    unknown = set(given) - set(names)
    if unknown:
        raise ValueError(f"unknown input fields: {sorted(unknown)}")


def header_of_meta(meta: dict[str, Any]) -> Header:
    """A header with the facts of a `meta` object."""
    fields = {}
    for name, value in meta.items():
        match name:
            case "file_size_gb":
                fields["file_size_bytes"] = int(value * 2**30)
            case "general_name_length":
                fields["general_name"] = "x" * value
            case _:
                fields[name] = tuple(value) if isinstance(value, list) else value
    return Header(**fields)


@contextmanager
def built(files: list[dict[str, Any]]) -> Iterator[Path]:
    """The files on disk (sparse where only the size counts) below a temporary folder."""
    with TemporaryDirectory(prefix="tree-") as folder:
        base = Path(folder).resolve()
        for file in files:
            allow(file, "path", "size", *CONTENTS)
            path = base / file["path"].lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if "json" in file:
                path.write_text(json.dumps(file["json"]))
            elif "text" in file:
                path.write_text(file["text"])
            elif "kv" in file:
                path.write_bytes(gguf_bytes(file["kv"], file["tensors"]))
            elif "shapes" in file:
                path.write_bytes(safetensors_bytes(file["shapes"]))
            else:
                path.touch()
            if "size" in file:
                os.truncate(path, max(file["size"], path.stat().st_size))
        yield base


def gguf_bytes(kv: dict[str, Any], tensors: dict[str, list[int]]) -> bytes:
    """The head of a GGUF file with these keys and f32 tensors (shape innermost first); its data is cut off."""
    with TemporaryDirectory(prefix="gguf-") as folder:
        path = Path(folder) / "file.gguf"
        write_file(str(path), kv, [(name, tuple(shape), "F32") for name, shape in tensors.items()])
        with path.open("rb") as stream:
            return stream.read(1 << 16)


def safetensors_bytes(shapes: dict[str, list[int]]) -> bytes:
    """The head of a safetensors file with bf16 tensors of these shapes (outermost first)."""
    table, offset = {}, 0
    for name, shape in shapes.items():
        end = offset + 2 * prod(shape)
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text


def stub_header(path: str) -> Header:
    """What reading a file without content comes to."""
    raise NotThisFormat("not-gguf", "not a GGUF file", path=path)
