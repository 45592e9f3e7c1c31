"""From a listing and its headers to rows: the result of a scan (discovery.md 1 to 10).

Two steps, so that a task can read headers one by one in between:

    listing = list_files(roots, platform=...)
    results = {item.path: read(item) for item in select(listing).candidates}     # Header or HeaderError
    inventory = discover(listing, reader_of(results))

A row whose `model_class` is blank cannot be served and `class_reason` says why; nothing found on disk raises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from models_app.core.catalog import FileEntry, Finding, Header, Row
from models_app.core.classes import BY_SLUG, IGNORED, SKIPPED, category_of, classify
from models_app.core.classes.three_d import PACKAGE_FILE
from models_app.core.discovery import ladder
from models_app.core.discovery.assembly import Found, assemble
from models_app.core.discovery.hostile_names import printable
from models_app.core.discovery.hugging_face import folder_identity
from models_app.core.discovery.identity import Identity, gguf_identity
from models_app.core.discovery.inheritance import gate_of
from models_app.core.discovery.ladder import is_projector_name
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.names import slugify, sort_key
from models_app.core.discovery.roots import Root
from models_app.core.discovery.selection import HF, Candidate, Dropped, Selection, select
from models_app.core.discovery.trellis import Companions, Package, companions
from models_app.core.errors import HeaderError, SourceUnreadable

HeaderOf = Callable[[str], Header]
"""Path of a candidate -> its header; raises HeaderError."""
PROJECTOR_ARCHITECTURE = "clip"
NOTED_DROPS = frozenset(
    {
        ladder.COMPONENT,
        ladder.FAST_MTP,
        ladder.OTHER_GGML,
        "package-part",
        "skip-pattern",
        "older-snapshot",
        "inside-package",
        "not-a-model",
        "not-a-model-folder",
        "pipeline-component",
    }
)
"""Parts of split sets are named with their model; drafters, codecs and projectors are components."""
NO_DINO = "no DINOv3 encoder near it: a folder named for it, with model.safetensors and config.json"
MAX_REASON_CHARACTERS = 300
"""Reasons quote text from headers, which is anybody's."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Rows sorted by id, publisher and path; what a person should know; and files that are no rows, with the reason."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    dropped: tuple[Dropped, ...]

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Files that are no rows and that nobody would find named anywhere else, as findings of level `info`."""
        return tuple(
            Finding(item.kind, item.path, item.reason, "info") for item in self.dropped if item.kind in NOTED_DROPS
        )


def reader_of(results: Mapping[str, Header | HeaderError]) -> HeaderOf:
    """Headers read earlier, as a function. A path that was never read counts as unreadable."""

    def header_of(path: str) -> Header:
        result = results.get(path)
        if result is None:
            raise SourceUnreadable("not-read", "the header was not read", path=path)
        if isinstance(result, HeaderError):
            raise result
        return result

    return header_of


def discover(listing: Listing, header_of: HeaderOf, skip_globs: Iterable[str] = ()) -> Inventory:
    """All rows of a listing with their pairings. `header_of` is called exactly once for each candidate."""
    selection = select(listing, skip_globs)
    reading = _Reading(selection, header_of)
    rows = assemble(reading.found, reading.projectors, selection)
    rows += [_sam_row(root, entry.path, entry.size_bytes, entry.mtime_ns) for root, entry in selection.sam]
    packages = _package_rows(listing, selection)
    rows += packages
    rows.sort(key=sort_key)
    lonely = [Finding("package-incomplete", row.full_path, NO_DINO, "error") for row in packages if not row.dino_path]
    findings = (*listing.findings, *selection.findings, *lonely)
    return Inventory(tuple(rows), findings, tuple(selection.dropped))


def _package_rows(listing: Listing, selection: Selection) -> list[Row]:
    """3D packages with the companions that lie near them."""
    if not selection.packages:
        return []
    files = [entry for part in listing.roots for entry in part.files]
    main = next((part.root.path for part in listing.roots if not part.root.category), listing.roots[0].root.path)
    return [_package_row(package, companions(main, package.path, files)) for package in selection.packages]


class _Reading:
    """Reads the candidates of a selection and sorts them into rows and projectors; the rest goes to `dropped`."""

    def __init__(self, selection: Selection, header_of: HeaderOf) -> None:
        self.selection = selection
        self.found: list[Found] = []
        self.projectors: dict[str, list[FileEntry]] = {}
        for candidate in selection.candidates:
            try:
                header = header_of(candidate.path)
            except HeaderError as error:
                self._unreadable(candidate, error)
            else:
                self._readable(candidate, header)

    def _unreadable(self, candidate: Candidate, error: HeaderError) -> None:
        name = os.path.basename(candidate.path)
        if candidate.kind == HF:
            self._drop(candidate, "not-a-model-folder", error.message)
            return
        text = f"unreadable header: {error.message}"
        finding = Finding("header-unreadable", candidate.path, text, "error", error.code, error.offset)
        self.selection.findings.append(finding)
        if is_projector_name(name):
            self._drop(candidate, "unreadable-projector", text)
            return
        self.found.append(Found(_row(candidate, gguf_identity(candidate.path), "", text), None, "", readable=False))

    def _readable(self, candidate: Candidate, header: Header) -> None:
        name = os.path.basename(candidate.path)
        if header.architecture == PROJECTOR_ARCHITECTURE:
            self.projectors.setdefault(os.path.dirname(candidate.path), []).append(candidate.parts[0])
            self._drop(candidate, "projector", "a projector for the models of its folder")
            return
        classification = classify(name, header)
        if classification.model_class == IGNORED:
            self._drop(candidate, "not-a-model", classification.reason)
            return
        slug = "" if classification.model_class == SKIPPED else classification.model_class
        if not slug:
            finding = Finding("not-servable", candidate.path, classification.reason)
            self.selection.findings.append(finding)
        if header.data_complete is False and not candidate.missing:
            text = header.warnings[0] if header.warnings else "the file is not complete"
            self.selection.findings.append(Finding("incomplete", candidate.path, text, "error"))
        is_folder = candidate.kind == HF
        identity = folder_identity(candidate.path, header.quant_label) if is_folder else gguf_identity(candidate.path)
        row = _row(candidate, identity, slug, classification.reason, header.audio_family)
        self.found.append(Found(row, None if is_folder else gate_of(header), header.audio_family))

    def _drop(self, candidate: Candidate, kind: str, reason: str) -> None:
        self.selection.dropped.append(Dropped(candidate.path, kind, reason))


def _row(candidate: Candidate, identity: Identity, slug: str, reason: str, audio_family: str = "") -> Row:
    return Row(
        id=identity.id,
        full_path=candidate.path,
        base_id=identity.base_id,
        quant=identity.quant,
        publisher=identity.publisher,
        repo=identity.repo,
        file_name=identity.file_name,
        size_bytes=candidate.size_bytes,
        mtime_ns=candidate.mtime_ns,
        root=candidate.root.path,
        category=category_of(slug, audio_family) or candidate.root.category,
        model_class=slug,
        class_reason=printable(reason)[:MAX_REASON_CHARACTERS],
        shards=candidate.parts if candidate.part_count > 1 else (),
        missing_shards=candidate.missing,
        shard_count=candidate.part_count,
        is_hf=candidate.kind == HF,
    )


def _sam_row(root: Root, path: str, size_bytes: int, mtime_ns: int) -> Row:
    name = os.path.basename(path)
    row_id = os.path.splitext(name)[0].replace("_", "-").lower()
    classification = classify(name)
    return Row(
        id=row_id,
        full_path=path,
        base_id=row_id,
        file_name=name,
        size_bytes=size_bytes,
        mtime_ns=mtime_ns,
        root=root.path,
        category=BY_SLUG["sam"].category,
        model_class="sam",
        class_reason=classification.reason,
        is_sam=True,
    )


def _package_row(package: Package, found: Companions) -> Row:
    name = os.path.basename(package.path)
    row_id = slugify(name)
    return Row(
        id=row_id,
        full_path=package.path,
        base_id=row_id,
        file_name=name,
        size_bytes=package.size_bytes,
        root=package.root.path,
        category=BY_SLUG["3d"].category,
        model_class="3d",
        class_reason=classify(PACKAGE_FILE).reason,
        is_trellis=True,
        dino_path=found.dino,
        birefnet_path=found.birefnet,
    )
