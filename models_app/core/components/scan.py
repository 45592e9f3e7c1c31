"""The files of a listing that serve other models, each classed by its header (discovery.md 11.1 to 11.3).

Unlike discovery it drops nothing by name: a T5 that is no row is found here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from models_app.core.catalog import FileEntry, Finding, Header
from models_app.core.classes.audiocpp import ARCHITECTURE as AUDIO_ARCHITECTURE
from models_app.core.classes.image import is_image_architecture
from models_app.core.components import signals
from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.components.signals import Signal, recognise_shapes, unflattened
from models_app.core.discovery import ladder
from models_app.core.discovery.enhancers import enhancer_name
from models_app.core.discovery.families import family_key
from models_app.core.discovery.identity import gguf_identity
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.selection import DRAFTER_KINDS, Selection, select
from models_app.core.discovery.sidecars import best_projector, speaks_of
from models_app.core.errors import HeaderError

GGUF_SHAPE_ROLES = frozenset({signals.VAE, signals.AUDIO_VAE, signals.CLIP, signals.T5})
T5_ARCHITECTURES = frozenset({"t5encoder", signals.UMT5})
LORA_MARK = ".lora_"
BY_NAME = "its name"
PROJECTOR_TYPE_KEYS = ("vision.projector_type", "projector_type")
"""All that is asked of `Header.extra` here."""
INCOMPLETE = "not complete: parts of it are missing"


@dataclass(frozen=True, slots=True)
class Survey:
    """All component files sorted by path, those that no model is given with the reason, and what else came up."""

    entries: tuple[PoolEntry, ...]
    findings: tuple[Finding, ...] = ()


def component_files(listing: Listing) -> list[FileEntry]:
    """Files whose headers a pool needs, each once, without parts of split sets behind the first."""
    return select(listing).components


def build_pool(listing: Listing, header_of: Callable[[str], Header]) -> Pool:
    """What models of a listing can be given. A file whose header cannot be read is left out."""
    entries = survey(select(listing), header_of).entries
    return Pool((entry for entry in entries if entry.is_offered), listing.platform)


def survey(selection: Selection, header_of: Callable[[str], Header]) -> Survey:
    """Every component file of a selection. Findings are about files that discovery does not judge."""
    judged = {part.path for candidate in selection.candidates for part in candidate.parts}
    gappy = {candidate.path for candidate in selection.candidates if candidate.missing}
    entries: list[PoolEntry] = []
    findings: list[Finding] = []
    for file in sorted(selection.components, key=lambda entry: entry.path):
        try:
            header = header_of(file.path)
        except HeaderError as error:
            if file.path not in judged:
                text = f"unreadable header: {error.message}"
                findings.append(Finding("header-unreadable", file.path, text, "error", error.code, error.offset))
            continue
        signal = recognise(os.path.basename(file.path), header)
        if signal is not None and file.path in gappy:
            signal = replace(signal, withheld=signal.withheld or INCOMPLETE)
        if signal is not None:
            entries.append(_entry(file, signal, header))
        elif file.path not in judged:
            part = _part_of_others(os.path.basename(file.path), header)
            if part is not None:
                entries.append(_entry(file, part, header))
            else:
                in_model = os.path.dirname(file.path) in selection.model_folders
                findings.append(_unused(file.path, header, in_model=in_model))
        if header.data_complete is False and file.path not in judged:
            text = header.warnings[0] if header.warnings else "the file is not complete"
            findings.append(Finding("incomplete", file.path, text, "error"))
    return Survey(tuple(_with_projectors(entries)), tuple(findings))


def _entry(file: FileEntry, signal: Signal, header: Header) -> PoolEntry:
    return PoolEntry(
        file.path,
        signal.role,
        signal.family,
        signal.width,
        header.file_size_bytes or file.size_bytes,
        vision=signal.vision,
        block_count=header.block_count,
        mtime_ns=file.mtime_ns,
        recognised_by=signal.evidence,
        withheld=signal.withheld,
    )


def _part_of_others(name: str, header: Header) -> Signal | None:
    """Files without a row of their own that a 3D or audio model takes by their name."""
    architecture = header.architecture.strip().lower()
    if ladder.BIREFNET in name.lower():
        return Signal(signals.MATTING, architecture, evidence=BY_NAME)
    if architecture == AUDIO_ARCHITECTURE:
        return Signal(signals.AUDIO_PART, header.audio_family, evidence=f"architecture {architecture}")
    return None


def _unused(path: str, header: Header, *, in_model: bool) -> Finding:
    """A file that is no model, no part of one that is served, and no component that is known."""
    if in_model and header.format != "gguf":
        text = "weights of a model folder that is not served: a GGUF of it lies beside them, or a pipeline uses them"
        return Finding("model-folder-part", path, text, "info")
    if any(LORA_MARK in tensor for tensor in header.tensor_shapes):
        return Finding("adapter", path, "a LoRA adapter: a launch names it, it is not served by itself", "info")
    if header.format == "gguf":
        text = "named like a component, but its header is that of none that is known"
    else:
        text = "no known component, and no part of a model folder: a whole checkpoint, or a network of another program"
    return Finding("component-unknown", path, text, "info")


def classify_header(name: str, header: Header) -> Signal | None:
    """Role of one file that a model can be given; None for all others."""
    signal = recognise(name, header)
    return signal if signal and signal.role in signals.POOL_ROLES and not signal.withheld else None


def recognise(name: str, header: Header) -> Signal | None:
    """What a file is good for beside or instead of being a model; None when it is no component."""
    shapes = {tensor: shape[::-1] for tensor, shape in header.tensor_shapes.items()}
    if header.format == "gguf":
        return _by_architecture(name, header) or _by_shapes(unflattened(shapes))
    signal = recognise_shapes(shapes)
    return _enhancer(name, signal.width) or signal if signal and signal.role == signals.LLM else signal


def _by_shapes(shapes: Mapping[str, tuple[int, ...]]) -> Signal | None:
    """VAEs and CLIP towers as GGUF: no key says what they are, their tensors do."""
    signal = recognise_shapes(shapes)
    return signal if signal and signal.role in GGUF_SHAPE_ROLES else None


def _by_architecture(name: str, header: Header) -> Signal | None:
    architecture = header.architecture.strip().lower()
    evidence = f"architecture {architecture}"
    width = header.embedding_length
    if architecture == "clip":
        kind = next((header.extra[key] for key in PROJECTOR_TYPE_KEYS if header.extra.get(key)), "")
        return Signal(signals.PROJECTOR, str(kind), evidence=evidence)
    if architecture in T5_ARCHITECTURES:
        return Signal(signals.T5, architecture, width, evidence=evidence)
    if by_name := _by_name(name, architecture):
        return by_name
    if is_image_architecture(architecture) or width <= 0:
        return None
    if enhancer := _enhancer(name, width):
        return enhancer
    evidence += f", {width:,} wide"
    if header.pooling_type > 0 or header.decision_type:
        reason = "a decision model" if header.decision_type else "an embedding model"
        return Signal(
            signals.LLM, architecture, width, evidence=evidence, withheld=f"{reason}: it does not read prompts"
        )
    recurrent = header.full_attn_interval > 0 or header.ssm_state_size > 0 or header.ssm_inner_size > 0
    role = signals.RECURRENT_LLM if recurrent else signals.LLM
    return Signal(role, architecture, width, evidence=evidence)


def _by_name(name: str, architecture: str) -> Signal | None:
    """Drafters and codecs, whose headers are those of other models."""
    kind = ladder.file_kind(name)
    if kind == ladder.FAST_MTP:
        return Signal(signals.DRAFTER, architecture, evidence=BY_NAME, withheld=ladder.REASONS[kind])
    if kind in DRAFTER_KINDS:
        return Signal(signals.DRAFTER, DRAFTER_KINDS[kind], evidence=BY_NAME)
    return Signal(signals.CODEC, architecture, evidence=BY_NAME) if kind == ladder.CODEC else None


def _enhancer(name: str, width: int) -> Signal | None:
    """A prompt enhancer has the header of a text encoder, is usually larger, and would win its width."""
    found = enhancer_name(name)
    return None if found is None else Signal(signals.ENHANCER, found.family, width, evidence=BY_NAME)


def _with_projectors(entries: Sequence[PoolEntry]) -> Iterable[PoolEntry]:
    """Text encoders take a projector of their folder, and can then see.

    In a folder with encoders of several families it goes only to those that its name speaks of, as in sidecars.py.
    """
    projectors: dict[str, list[FileEntry]] = {}
    families: dict[str, set[str]] = {}
    for entry in entries:
        folder = os.path.dirname(entry.path)
        if entry.role == signals.PROJECTOR:
            projectors.setdefault(folder, []).append(FileEntry(entry.path, entry.size_bytes, entry.mtime_ns))
        elif entry.role == signals.LLM:
            families.setdefault(folder, set()).add(family_key(gguf_identity(entry.path).base_id))
    for entry in entries:
        folder = os.path.dirname(entry.path)
        offered = projectors.get(folder, []) if entry.role == signals.LLM and not entry.withheld else []
        if offered and len(families[folder]) > 1:
            base_id = gguf_identity(entry.path).base_id
            offered = [item for item in offered if speaks_of(item.path, base_id)]
        best = best_projector(offered)
        yield replace(entry, mmproj=best.path, vision=True) if best else entry
