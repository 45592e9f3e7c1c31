"""Hugging Face model folders: which ones to read, and how they are named (discovery.md 6.3, headers.md 12).

Whether `config.json` describes a generative model is for its reader to say; here only names and sizes count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from models_app.core.catalog import FileEntry
from models_app.core.discovery.identity import Identity, owner_of, with_quant
from models_app.core.discovery.shards import shard_name, shard_set

CONFIG = "config.json"


def folder_parts(entries: Iterable[FileEntry]) -> tuple[FileEntry, ...]:
    """The weight files of a folder that may be a model; empty when it cannot be one.

    A GGUF beside the safetensors is the same model converted: then only that is a row.
    """
    names = {os.path.basename(entry.path): entry for entry in entries}
    if CONFIG not in names or any(name.lower().endswith(".gguf") for name in names):
        return ()
    parts = tuple(entry for name, entry in names.items() if name.lower().endswith(".safetensors"))
    return parts if sum(part.size_bytes for part in parts) > 0 else ()


def incomplete_shards(parts: Iterable[FileEntry]) -> tuple[int, tuple[int, ...]]:
    """Size of the folder's split set and the numbers that are missing; (1, ()) without one."""
    sets: dict[tuple[str, int], list[tuple[int, FileEntry]]] = {}
    for part in parts:
        shard = shard_name(os.path.basename(part.path))
        if shard:
            sets.setdefault((shard.whole_name, shard.count), []).append((shard.number, part))
    if not sets:
        return 1, ()
    (whole, count), numbered = max(sets.items(), key=lambda item: len(item[1]))
    return count, shard_set(whole, count, numbered).missing


def folder_identity(folder: str, quant: str) -> Identity:
    """Identity of a model folder; `quant` is the label read from its config."""
    publisher, repo = owner_of(folder.replace("\\", "/"))
    base_id = repo.lower()
    return Identity(with_quant(base_id, quant), base_id, quant, repo, publisher, repo)
