"""The digest of everything that a generated file depends on (state.md 11.1)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MODEL_SUFFIXES = (".gguf", ".ggml", ".safetensors")
FOLDER_FILES = ("config.json",)
"""Files that make a folder a model."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file under a root: `root` is the index in the list of roots, blank ones counted."""

    root: int
    relative: str
    size_bytes: int
    mtime_ns: int

    @property
    def place(self) -> bytes:
        return f"{self.root}\0{self.relative}".encode("utf-8", "surrogateescape")

    @property
    def line(self) -> bytes:
        return self.place + f"\0{self.size_bytes}\0{self.mtime_ns}\n".encode()


def inputs_digest(records: Iterable[FileRecord], blob: bytes, further: Iterable[FileRecord] = ()) -> str:
    """SHA-256 in lower-case hex over the GGUF files, the blob, and any other file that planning reads.

    Without `further` this is the digest of the contract; sorting is by bytes, so root 10 comes before root 2.
    """
    digest = hashlib.sha256()
    for record in _sorted(record for record in records if record.relative.lower().endswith(".gguf")):
        digest.update(record.line)
    digest.update(b"\0generate\0")
    digest.update(blob)
    others = _sorted(further)
    if others:
        digest.update(b"\0further\0")
        for record in others:
            digest.update(record.line)
    return digest.hexdigest()


def inputs_blob(version: str, roots: Sequence[str], generate_file: bytes, sidecar: bytes, program_folder: str) -> bytes:
    """Everything that is not a file of a root. Paths beside the program are baked into the output."""
    return b"".join(
        (
            b"genver\0",
            version.encode(),
            b"\0",
            "\0".join(roots).encode("utf-8", "surrogateescape"),
            b"\0",
            generate_file,
            b"\0sidecar\0",
            sidecar,
            b"\0exedir\0",
            program_folder.replace("\\", "/").encode("utf-8", "surrogateescape"),
        )
    )


def is_gguf(name: str) -> bool:
    return name.lower().endswith(".gguf")


def is_further_model_file(name: str) -> bool:
    """Model files that are not GGUF: SAM packages, safetensors, the description of a Hugging Face folder."""
    name = name.lower()
    return not is_gguf(name) and (name.endswith(MODEL_SUFFIXES) or name in FOLDER_FILES)


def root_records(roots: Sequence[str], wanted: Callable[[str], bool]) -> list[FileRecord]:
    """Files under each non-blank root whose name is wanted. What cannot be read is left out."""
    records = []
    for index, root in enumerate(roots):
        if not root.strip():
            continue
        for folder, _, names in os.walk(root):
            for name in filter(wanted, names):
                record = _record(index, Path(folder) / name, Path(root))
                if record is not None:
                    records.append(record)
    return records


def single_records(paths: Iterable[str]) -> list[FileRecord]:
    """Single files that planning depends on: chat templates, backend executables. Root -1 keeps them apart."""
    records = (_record(-1, Path(path), None) for path in sorted(set(paths)) if path.strip())
    return [record for record in records if record is not None]


def _record(root: int, path: Path, base: Path | None) -> FileRecord | None:
    try:
        found = path.stat()
    except OSError:
        return None
    relative = path.relative_to(base).as_posix() if base is not None else path.as_posix()
    return FileRecord(root, relative, found.st_size, found.st_mtime_ns)


def _sorted(records: Iterable[FileRecord]) -> list[FileRecord]:
    return sorted(records, key=lambda record: record.place)
