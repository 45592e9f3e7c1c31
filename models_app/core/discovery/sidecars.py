"""Drafters, projectors and codecs that lie in a model's own folder (discovery.md 7 and 9.1).

One rule for the walk and for the probe of a single folder. In a folder with models of several families, a sidecar goes
only to those that its name speaks of: a wrong projector loads without complaint and answers with invented pictures.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from models_app.core.catalog import FileEntry, Row
from models_app.core.discovery.families import family_key, model_base_key
from models_app.core.discovery.identity import gguf_identity, quant_of
from models_app.core.discovery.ladder import file_kind
from models_app.core.discovery.selection import DRAFTER_KINDS, Drafter
from models_app.core.discovery.shards import shard_name

_PROJECTOR_QUANTS = ("F16", "BF16", "Q8_0")
_MARKERS = re.compile(r"(?:^|[-_.])(?:mmproj|mtp|dflash|draft|model|projector)(?=[-_.]|$)", re.ASCII)
NO_PROJECTOR = "none"
BY_FOLDER, BY_NAME = "folder", "name-match"


@dataclass(frozen=True, slots=True)
class FolderSidecars:
    """What one folder offers to its models."""

    drafters: Sequence[Drafter] = ()
    projectors: Sequence[FileEntry] = ()
    codecs: Sequence[FileEntry] = ()


def best_drafter(drafters: Iterable[Drafter], wanted_kind: str = "") -> Drafter | None:
    """The wanted kind, else `mtp`, else `dflash`; then the lowest path. Of a split one only the first part counts."""
    order = (wanted_kind, "mtp", "dflash")
    whole = [drafter for drafter in drafters if _is_first_part(drafter.entry)]
    return min(whole, key=lambda drafter: (order.index(drafter.kind), drafter.entry.path), default=None)


def best_projector(projectors: Iterable[FileEntry]) -> FileEntry | None:
    """F16, then BF16, then Q8_0, then any other, F32 last; then the lowest path."""
    return min(projectors, key=lambda entry: (_projector_rank(entry), entry.path), default=None)


def probe_drafter(entries: Iterable[FileEntry], wanted_kind: str = "") -> Drafter | None:
    """The drafter that a folder's files offer by name: what the editor asks about one folder."""
    kinds = ((entry, DRAFTER_KINDS.get(file_kind(os.path.basename(entry.path)))) for entry in entries)
    return best_drafter((Drafter(entry, kind) for entry, kind in kinds if kind), wanted_kind)


def attach(rows: Sequence[Row], offered: FolderSidecars, *, chat: frozenset[str], speech: frozenset[str]) -> list[Row]:
    """The rows of one folder with their sidecars.

    `chat` and `speech` are the paths of rows that may take a drafter and projector, and a codec.
    """
    families = {family_key(row.base_id) for row in rows if row.full_path in chat}
    mixed = len(families) > 1
    origin = BY_NAME if mixed else BY_FOLDER
    codec = min(offered.codecs, key=lambda entry: entry.path, default=None)
    attached = []
    for row in rows:
        if row.full_path in chat:
            drafters = [item for item in offered.drafters if not mixed or speaks_of(item.entry.path, row.base_id)]
            projectors = [item for item in offered.projectors if not mixed or speaks_of(item.path, row.base_id)]
            row = _with_projector(_with_drafter(row, drafters, origin), projectors, origin)
        if codec and row.full_path in speech:
            row = replace(row, codec_path=codec.path, codec_size_bytes=codec.size_bytes)
        attached.append(row)
    return attached


def resolve_projector(found: tuple[str, int], typed: str, file: FileEntry | None) -> tuple[str, int]:
    """Path and bytes of a row's projector when a person may have named one.

    `found` is discovery's pair, `file` what a stat of the typed path says (None: missing or a folder). A typed path
    always wins; its size is its own, never that of the pair it replaces.
    """
    wanted = typed.strip()
    if not wanted or wanted.lower() == NO_PROJECTOR:
        return found
    return wanted, file.size_bytes if file else 0


def draft_bytes(rows: Iterable[Row]) -> int:
    """Disk bytes of all drafters; one that is shared by many rows counts once."""
    sizes: Mapping[str, int] = {row.draft_path: row.draft_size_bytes for row in rows if row.draft_path}
    return sum(sizes.values())


def is_inherited(row: Row, sidecar_path: str) -> bool:
    """Does the sidecar come from another folder than the row's own?"""
    return bool(sidecar_path) and os.path.dirname(sidecar_path) != os.path.dirname(row.full_path)


def _with_drafter(row: Row, drafters: Iterable[Drafter], origin: str) -> Row:
    best = best_drafter(drafters)
    if best is None:
        return row
    entry = best.entry
    return replace(
        row, draft_path=entry.path, draft_kind=best.kind, draft_size_bytes=entry.size_bytes, draft_origin=origin
    )


def _with_projector(row: Row, projectors: Iterable[FileEntry], origin: str) -> Row:
    best = best_projector(projectors)
    if best is None:
        return row
    return replace(row, mmproj_path=best.path, mmproj_size_bytes=best.size_bytes, mmproj_origin=origin)


def speaks_of(sidecar_path: str, base_id: str) -> bool:
    """Does a sidecar's name, without its markers and quant, name the model of this id, or its family?"""
    stem = _MARKERS.sub("", gguf_identity(os.path.basename(sidecar_path)).base_id).strip("-_.").replace("_", "-")
    if not stem:
        return False
    base = model_base_key(base_id.replace("_", "-"))
    return family_key(stem) == family_key(base) or f"{base}-".startswith(f"{stem}-") or stem.startswith(f"{base}-")


def _is_first_part(entry: FileEntry) -> bool:
    shard = shard_name(os.path.basename(entry.path))
    return shard is None or shard.number == 1


def _projector_rank(entry: FileEntry) -> int:
    quant = quant_of(os.path.basename(entry.path))
    if quant in _PROJECTOR_QUANTS:
        return _PROJECTOR_QUANTS.index(quant)
    return len(_PROJECTOR_QUANTS) + (quant == "F32")
