"""Rows put together: audio packages folded, sidecars of the folder attached, the rest inherited in the family."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models_app.core.catalog import FileEntry, Finding, Row
from models_app.core.classes import BY_SLUG, category_of
from models_app.core.discovery.audio_packages import Package, PackagedModel, audio_package
from models_app.core.discovery.inheritance import Gate, inherit_by_root
from models_app.core.discovery.selection import Dropped, Selection
from models_app.core.discovery.sidecars import FolderSidecars, attach


@dataclass(frozen=True, slots=True)
class Found:
    """One row in the making. `gate` is None where the header says nothing about kinship."""

    row: Row
    gate: Gate | None
    audio_family: str = ""
    readable: bool = True

    @property
    def takes_sidecars(self) -> bool:
        """A drafter or projector may be attached: chat models, and files that might be one."""
        known = BY_SLUG.get(self.row.model_class)
        return known.takes_sidecars if known else not self.readable

    @property
    def takes_codec(self) -> bool:
        return self.row.model_class == "tts" or not self.readable


def assemble(found: Sequence[Found], projectors: Mapping[str, Sequence[FileEntry]], selection: Selection) -> list[Row]:
    """Rows of all roots with their pairings, unsorted."""
    folders: dict[str, list[Found]] = {}
    for item in found:
        folders.setdefault(os.path.dirname(item.row.full_path), []).append(item)
    hidden: dict[str, list[str]] = {}
    for file in selection.dropped:
        folder, name = os.path.split(file.path)
        hidden.setdefault(folder, []).append(name)
    entries = {entry.path: entry for entry in selection.components}
    rows: list[Row] = []
    for folder, items in folders.items():
        offered = FolderSidecars(
            selection.drafters.get(folder, ()), projectors.get(folder, ()), selection.codecs.get(folder, ())
        )
        rows += attach(
            [item.row for item in _fold_audio(folder, items, hidden.get(folder, ()), entries, selection)],
            offered,
            chat=frozenset(item.row.full_path for item in items if item.takes_sidecars),
            speech=frozenset(item.row.full_path for item in items if item.takes_codec),
        )
    gates = {item.row.full_path: item.gate for item in found if item.gate and item.takes_sidecars}
    return inherit_by_root(rows, gates)


def _fold_audio(
    folder: str,
    items: Sequence[Found],
    hidden: Sequence[str],
    entries: Mapping[str, FileEntry],
    selection: Selection,
) -> list[Found]:
    """The folder's rows with the parts of a multi-file audio model replaced by that model.

    `hidden` are the names of its files that are no rows: a package may need one of those too. `entries` are files of
    all folders by their path.
    """
    families = {os.path.basename(item.row.full_path): item.audio_family.strip().lower() for item in items}
    if not any(families.values()):
        return list(items)
    by_name = {os.path.basename(item.row.full_path): item for item in items}
    package = audio_package(os.path.basename(folder), {**dict.fromkeys(hidden, ""), **families})
    if package is None:
        return list(items)
    if package.problem:
        for path in [by_name[name].row.full_path for name in package.lonely] or [folder]:
            selection.findings.append(Finding("package-incomplete", path, package.problem))
    known = {os.path.basename(path): entry for path, entry in entries.items() if os.path.dirname(path) == folder}
    return _packaged(package, by_name, known, selection)


def _packaged(
    package: Package, by_name: Mapping[str, Found], known: Mapping[str, FileEntry], selection: Selection
) -> list[Found]:
    anchors = {model.anchor: model for model in package.models}
    kept = []
    for name, item in by_name.items():
        if name in anchors:
            kept.append(_packaged_row(anchors[name], item, by_name, known))
        elif name in package.consumed:
            reason = "a part of an audio model made of several files"
            selection.dropped.append(Dropped(item.row.full_path, "package-part", reason))
        else:
            kept.append(item)
    return kept


def _packaged_row(
    model: PackagedModel, anchor: Found, by_name: Mapping[str, Found], known: Mapping[str, FileEntry]
) -> Found:
    """The anchor file's row under the package's name, with the size of all its files."""
    family = next((item.audio_family for item in by_name.values() if item.audio_family), "")
    audio = BY_SLUG["audiocpp"]
    parts = [known[name] for name in model.files if name in known]
    row = replace(
        anchor.row,
        id=model.id,
        base_id=anchor.row.base_id if model.id == anchor.row.id else model.id,
        size_bytes=sum(part.size_bytes for part in parts),
        shards=tuple(FileEntry(part.path, part.size_bytes, part.mtime_ns) for part in parts),
        audio_family=family,
        model_class=audio.slug,
        category=category_of(audio.slug, family),
        class_reason=f"audio.cpp package of family {family}",
    )
    return Found(row, None, family)
