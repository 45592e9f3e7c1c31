"""What a walk saw, as plain values: discovery works on these and never touches the disk itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from models_app.core.catalog import FileEntry, Finding
from models_app.core.discovery.roots import Root

MODEL_SUFFIXES = (".gguf", ".ggml", ".safetensors")
KEPT_NAMES = frozenset(
    {"config.json", "pipeline.json", "model_index.json", "model.safetensors.index.json", "modules.json"}
)


def is_kept(name: str) -> bool:
    """Does a listing remember this file? Anything else in a models tree is only counted."""
    lower = name.lower()
    return lower.endswith(MODEL_SUFFIXES) or lower in KEPT_NAMES


@dataclass(frozen=True, slots=True)
class RootFiles:
    """The files of one root, in walk order."""

    root: Root
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything found below the roots. Sizes are those of link targets."""

    platform: str
    roots: tuple[RootFiles, ...] = ()
    findings: tuple[Finding, ...] = ()
    package_bytes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Folder with a `pipeline.json` -> bytes of all files below it."""
    cache_commits: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Hub cache folder `models--owner--repo` -> the commit that its `refs/main` names."""
    folders: Mapping[str, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))
    """Folder that was listed -> its device and number."""
    unread: tuple[str, ...] = ()
    """Roots and folders that could not be listed: what was known below them is offline, not gone."""
    unread_files: tuple[str, ...] = ()
    """Files that are there and could not be looked at, and links that lead nowhere: files or folders of drives that
    are away."""
    seen_count: int = 0
    """Every directory entry that was looked at."""
    stopped: bool = False
    """True when the caller asked to stop: the listing is incomplete."""

    @property
    def files(self) -> Iterator[FileEntry]:
        """Of all roots; overlapping roots give a file twice."""
        return (entry for part in self.roots for entry in part.files)

    @property
    def file_count(self) -> int:
        return sum(len(part.files) for part in self.roots)

    @property
    def fingerprint(self) -> str:
        """Equal for listings whose files, sizes and times are equal: then no row can have changed."""
        digest = hashlib.blake2b(self.platform.encode(), digest_size=16)
        for part in self.roots:
            digest.update(f"\n{part.root.category}\0{part.root.path}".encode())
            for entry in part.files:
                times = f"{entry.mtime_ns}\0{entry.ctime_ns}"
                digest.update(f"\n{entry.path}\0{entry.real_path}\0{entry.size_bytes}\0{times}".encode())
        digest.update(repr((self.findings, sorted(self.cache_commits.items()), self.unread)).encode())
        return digest.hexdigest()

    @property
    def total_bytes(self) -> int:
        return sum(entry.size_bytes for entry in self.files)


def by_folder(files: Iterable[FileEntry]) -> dict[str, list[FileEntry]]:
    """Files grouped by the folder that directly holds them, both in the given order."""
    folders: dict[str, list[FileEntry]] = {}
    for entry in files:
        folders.setdefault(os.path.dirname(entry.path), []).append(entry)
    return folders
