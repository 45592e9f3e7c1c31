"""The pool of a listing: every safetensors and GGUF file classed by its header (discovery.md 11.1 to 11.3).

Unlike discovery it drops nothing by name: a T5 that is no row is found here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from models_app.core.catalog import FileEntry, Header
from models_app.core.classes.image import is_image_architecture
from models_app.core.components import signals
from models_app.core.components.pool import Pool, PoolEntry
from models_app.core.components.signals import Signal, classify_shapes
from models_app.core.discovery import ladder
from models_app.core.discovery.enhancers import is_enhancer
from models_app.core.discovery.listing import Listing
from models_app.core.discovery.roots import path_key
from models_app.core.discovery.shards import shard_name
from models_app.core.discovery.sidecars import best_projector
from models_app.core.errors import HeaderError

PROJECTOR = "mmproj"
GGUF_SHAPE_ROLES = frozenset({signals.VAE, signals.AUDIO_VAE, signals.CLIP, signals.T5})
T5_ARCHITECTURES = frozenset({"t5encoder", signals.UMT5})
DRAFTER_KINDS = frozenset({ladder.FAST_MTP, ladder.DRAFTER_MTP, ladder.DRAFTER_DFLASH})


def component_files(listing: Listing) -> list[FileEntry]:
    """Files whose headers a pool needs, each once, without parts of split sets behind the first."""
    found: dict[str, FileEntry] = {}
    for part in listing.roots:
        for entry in part.files:
            name = os.path.basename(entry.path)
            if name.lower().endswith((".safetensors", ".gguf")) and _stands_alone(name):
                found.setdefault(path_key(entry.real_path or entry.path, listing.platform), entry)
    return sorted(found.values(), key=lambda entry: entry.path)


def _stands_alone(name: str) -> bool:
    """A part of a split checkpoint is no component; of a split GGUF the first part stands for all."""
    shard = shard_name(name)
    return shard is None or (shard.number == 1 and name.lower().endswith(".gguf"))


def build_pool(listing: Listing, header_of: Callable[[str], Header]) -> Pool:
    """The pool of a listing. A file whose header cannot be read is left out."""
    entries: list[PoolEntry] = []
    projectors: dict[str, list[FileEntry]] = {}
    for file in component_files(listing):
        try:
            header = header_of(file.path)
        except HeaderError:
            continue
        signal = classify_header(os.path.basename(file.path), header)
        if signal is None:
            continue
        if signal.role == PROJECTOR:
            projectors.setdefault(os.path.dirname(file.path), []).append(file)
            continue
        size_bytes = header.file_size_bytes or file.size_bytes
        entries.append(
            PoolEntry(
                file.path,
                signal.role,
                signal.family,
                signal.width,
                size_bytes,
                vision=signal.vision,
                block_count=header.block_count,
            )
        )
    return Pool((_with_projector(entry, projectors) for entry in entries), listing.platform)


def classify_header(name: str, header: Header) -> Signal | None:
    """Role of one file; None when it is no component."""
    if header.format == "gguf":
        return _classify_gguf(name, header)
    signal = classify_shapes({tensor: shape[::-1] for tensor, shape in header.tensor_shapes.items()})
    return None if signal and signal.role == signals.LLM and is_enhancer(name) else signal


def _classify_gguf(name: str, header: Header) -> Signal | None:
    return _by_architecture(name, header) or _by_shapes(header)


def _by_shapes(header: Header) -> Signal | None:
    """VAEs and CLIP towers as GGUF: no key says what they are, their tensors do."""
    signal = classify_shapes({tensor: shape[::-1] for tensor, shape in header.tensor_shapes.items()})
    return signal if signal and signal.role in GGUF_SHAPE_ROLES else None


def _by_architecture(name: str, header: Header) -> Signal | None:
    architecture = header.architecture.strip().lower()
    width = header.embedding_length
    if architecture == "clip":
        return Signal(PROJECTOR)
    if architecture in T5_ARCHITECTURES:
        return Signal(signals.T5, architecture, width)
    if is_image_architecture(architecture) or width <= 0:
        return None
    if is_enhancer(name) or ladder.file_kind(name) in DRAFTER_KINDS:
        return None
    if header.pooling_type > 0 or header.decision_type:
        return None
    recurrent = header.full_attn_interval > 0 or header.ssm_state_size > 0 or header.ssm_inner_size > 0
    return Signal(signals.RECURRENT_LLM if recurrent else signals.LLM, architecture, width)


def _with_projector(entry: PoolEntry, projectors: dict[str, list[FileEntry]]) -> PoolEntry:
    """A text encoder takes the projector of its folder, and can then see."""
    best = best_projector(projectors.get(os.path.dirname(entry.path), ())) if entry.role == signals.LLM else None
    return replace(entry, mmproj=best.path, vision=True) if best else entry
