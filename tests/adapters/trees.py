"""Trees of files as vectors describe them (tests/vectors/README.md 4): on disk, headers from the case."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from models_app.core.catalog import Header
from models_app.core.errors import NotThisFormat

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
            else:
                path.touch()
            if "size" in file:
                os.truncate(path, max(file["size"], path.stat().st_size))
        yield base


def stub_header(path: str) -> Header:
    """What reading a file without content comes to."""
    raise NotThisFormat("not-gguf", "not a GGUF file", path=path)
