"""What to read: the listing sorted by name rules alone into rows, sidecars, candidates and the rest.

No header is read here. `candidates` are the files and folders whose header decides; a task can read those one by one,
with progress, and hand the results to `inventory.discover`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from models_app.core.catalog import FileEntry, Finding
from models_app.core.discovery import ladder, trellis
from models_app.core.discovery.hugging_face import folder_parts, incomplete_shards
from models_app.core.discovery.identity import cache_snapshot
from models_app.core.discovery.listing import Listing, RootFiles, by_folder
from models_app.core.discovery.roots import Root, path_key
from models_app.core.discovery.shards import ShardSet, shard_name, shard_set

GGUF = "gguf"
HF = "hf"
CONFIG = "config.json"
DRAFTER_KINDS = {ladder.DRAFTER_MTP: "mtp", ladder.DRAFTER_DFLASH: "dflash"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something whose header must be read: a GGUF file, a split set (path of its first part), or a folder."""

    path: str
    kind: str
    root: Root
    parts: tuple[FileEntry, ...]
    part_count: int = 1
    missing: tuple[int, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    @property
    def mtime_ns(self) -> int:
        return max(part.mtime_ns for part in self.parts)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A file that is no row, and why."""

    path: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Drafter:
    """A drafter file by its name. `kind` is `mtp` or `dflash`."""

    entry: FileEntry
    kind: str


@dataclass
class Selection:
    """Everything that names decide, in root order."""

    candidates: list[Candidate] = field(default_factory=list)
    sam: list[tuple[Root, FileEntry]] = field(default_factory=list)
    packages: list[trellis.Package] = field(default_factory=list)
    drafters: dict[str, list[Drafter]] = field(default_factory=dict)
    """Folder -> drafters in it."""
    codecs: dict[str, list[FileEntry]] = field(default_factory=dict)
    components: list[FileEntry] = field(default_factory=list)
    """Every file that may serve other models, whatever its name, each once: what the component pool looks at."""
    model_folders: set[str] = field(default_factory=set)
    """Folders with a `config.json`: their weights belong to a Hugging Face model, served or not."""
    dropped: list[Dropped] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def select(listing: Listing, skip_globs: Iterable[str] = ()) -> Selection:
    """Apply the name rules to a whole listing. A file under two roots belongs to the first."""
    return _Selector(listing, tuple(glob.lower() for glob in skip_globs)).run()


class _Selector:
    def __init__(self, listing: Listing, skip_globs: tuple[str, ...]) -> None:
        self.listing = listing
        self.skip_globs = skip_globs
        self.result = Selection()
        self._taken: set[str] = set()
        self._pooled: set[str] = set()
        self._snapshots = _snapshots(listing) if listing.cache_commits else frozenset()

    def run(self) -> Selection:
        for part in self.listing.roots:
            folders = by_folder(part.files)
            packages = trellis.packages(part.root, folders, self.listing.package_bytes)
            self.result.packages += [package for package in packages if self._is_new(package.path, "")]
            self._folders(part, folders, tuple(package.path + os.sep for package in packages))
        return self.result

    def _folders(self, part: RootFiles, folders: Mapping[str, list[FileEntry]], packages: tuple[str, ...]) -> None:
        for folder, entries in folders.items():
            if packages and (folder + os.sep).startswith(packages):
                self._drop_all(entries, "inside-package", "inside a 3D package")
            elif self._is_older_snapshot(folder):
                self._drop_all(entries, "older-snapshot", "an older snapshot; refs/main names another one")
            else:
                self._files(part.root, entries)
                self._model_folder(part.root, folder, entries, folders)
                self._pool(folder, entries)

    def _pool(self, folder: str, entries: Iterable[FileEntry]) -> None:
        if any(os.path.basename(entry.path) == CONFIG for entry in entries):
            self.result.model_folders.add(folder)
        for entry in entries:
            name = os.path.basename(entry.path)
            key = path_key(entry.real_path or entry.path, self.listing.platform)
            if name.lower().endswith((".safetensors", ".gguf")) and _stands_alone(name) and key not in self._pooled:
                self._pooled.add(key)
                self.result.components.append(entry)

    def _drop_all(self, entries: Iterable[FileEntry], kind: str, reason: str) -> None:
        gguf = (entry for entry in entries if entry.path.lower().endswith(".gguf"))
        self.result.dropped.extend(Dropped(entry.path, kind, reason) for entry in gguf)

    def _is_older_snapshot(self, folder: str) -> bool:
        """Only where the snapshot that counts is on disk too."""
        found = cache_snapshot(folder) if self._snapshots else None
        if found is None:
            return False
        cache_folder, commit = found
        wanted = self.listing.cache_commits.get(cache_folder, commit)
        return wanted != commit and (cache_folder, wanted) in self._snapshots

    def _files(self, root: Root, entries: list[FileEntry]) -> None:
        sets: dict[tuple[str, int], list[tuple[int, FileEntry]]] = {}
        for entry in entries:
            folder, name = os.path.split(entry.path)
            kind = ladder.file_kind(name)
            if kind == ladder.IGNORED:
                continue
            if kind == ladder.SAM:
                if self._is_new(entry.path, entry.real_path):
                    self.result.sam.append((root, entry))
            elif kind in DRAFTER_KINDS:
                self.result.drafters.setdefault(folder, []).append(Drafter(entry, DRAFTER_KINDS[kind]))
                self._drop(entry, kind)
            elif kind == ladder.CODEC:
                self.result.codecs.setdefault(folder, []).append(entry)
                self._drop(entry, kind)
            elif kind != ladder.CANDIDATE:
                self._drop(entry, kind)
            elif any(fnmatchcase(name.lower(), glob) for glob in self.skip_globs):
                self.result.dropped.append(Dropped(entry.path, "skip-pattern", "matches a skip pattern"))
            elif shard := shard_name(name):
                whole = path_key(shard.whole_name, self.listing.platform)
                sets.setdefault((whole, shard.count), []).append((shard.number, entry))
            else:
                self._add(Candidate(entry.path, GGUF, root, (entry,)))
        for (whole, count), parts in sets.items():
            self._set(root, shard_set(whole, count, parts), parts)

    def _set(self, root: Root, found: ShardSet, parts: list[tuple[int, FileEntry]]) -> None:
        """One split set: its first part is the candidate, the others are named as parts."""
        first = found.parts[0] if found.has_first else None
        for _, entry in parts:
            if entry is first:
                continue
            reason = "a later part of a split set" if entry in found.parts else "its number lies outside its set"
            self.result.dropped.append(Dropped(entry.path, "later-shard", reason))
        if first is None:
            lowest = min(parts, key=lambda part: part[0])[1].path
            text = f"part 1 of {found.count} is missing, so the set cannot be loaded"
            self.result.findings.append(Finding("shards-missing", lowest, text, "error"))
            return
        if self._add(Candidate(first.path, GGUF, root, found.parts, found.count, found.missing)) and found.missing:
            self.result.findings.append(_missing_finding(first.path, found.missing, found.count))

    def _model_folder(
        self, root: Root, folder: str, entries: list[FileEntry], folders: Mapping[str, list[FileEntry]]
    ) -> None:
        parts = folder_parts(entries)
        if not parts:
            return
        if any(
            os.path.basename(entry.path) == "model_index.json" for entry in folders.get(os.path.dirname(folder), ())
        ):
            reason = "a component folder of a diffusers pipeline"
            self.result.dropped.append(Dropped(folder, "pipeline-component", reason))
            return
        count, missing = incomplete_shards(parts)
        if self._add(Candidate(folder, HF, root, parts, count, missing)) and missing:
            self.result.findings.append(_missing_finding(folder, missing, count))

    def _add(self, candidate: Candidate) -> bool:
        if not self._is_new(candidate.path, candidate.parts[0].real_path):
            return False
        self.result.candidates.append(candidate)
        return True

    def _is_new(self, path: str, real_path: str) -> bool:
        """First come, first served, by path key and by where the bytes really are."""
        keys = {path_key(text, self.listing.platform) for text in (path, real_path) if text}
        if self._taken & keys:
            return False
        self._taken |= keys
        return True

    def _drop(self, entry: FileEntry, kind: str) -> None:
        self.result.dropped.append(Dropped(entry.path, kind, ladder.REASONS[kind]))


def _stands_alone(name: str) -> bool:
    """A part of a split checkpoint is no component; of a split GGUF the first part stands for all."""
    shard = shard_name(name)
    return shard is None or (shard.number == 1 and name.lower().endswith(".gguf"))


def _snapshots(listing: Listing) -> frozenset[tuple[str, str]]:
    """Every (cache folder, commit) that holds a model file."""
    folders = {os.path.dirname(entry.path) for part in listing.roots for entry in part.files}
    return frozenset(found for folder in folders if (found := cache_snapshot(folder)))


def _missing_finding(path: str, missing: tuple[int, ...], count: int) -> Finding:
    numbers = ", ".join(str(number) for number in missing[:8]) + (", …" if len(missing) > 8 else "")
    return Finding("shards-missing", path, f"missing part {numbers} of {count}", "error")
