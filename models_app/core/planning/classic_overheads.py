"""Classic terms beside weights and cache: compute buffer, projector, drafter (sizing.md 6 and 7). Figures are GiB."""

from __future__ import annotations

from gpus_app.core.runtimes import runtime_gib
from models_app.core.catalog import Header
from models_app.core.planning.drafters import DFLASH, MTP, draft_file_attaches, effective_spec, spec_chain
from models_app.core.planning.kv_types import element_bytes
from models_app.core.units import GIB

FLAT_COMPUTE_GIB = 0.17
"""Compute buffer of a model whose header lacks the dimensions."""

_VOCAB_UBATCH = 1024
_BAKED_HEAD_GIB = 0.15
_DRAFTER_EXTRA_GIB = 0.1
_CLIP_FACTOR = 1.3
_LONG_HEADROOM_GIB = 0.5


def graph_gib(vocab: int, embedding: int, ubatch: int, factor: float = 1.0) -> float | None:
    """The compute graph without the runtime, None where a dimension is missing."""
    if min(vocab, embedding, ubatch) <= 0:
        return None
    scale = factor if factor > 0 else 1.0
    return scale * (vocab * min(ubatch, _VOCAB_UBATCH) * 4 + ubatch * embedding * 8 * 4) / GIB


def compute_gib(vocab: int, embedding: int, ubatch: int, factor: float, runtime: str) -> float:
    """Runtime and graph; a flat figure, runtime included, where a dimension is missing."""
    graph = graph_gib(vocab, embedding, ubatch, factor)
    return FLAT_COMPUTE_GIB if graph is None else runtime_gib(runtime) + graph


def clip_gib(image_size: int, patch_size: int, embedding: int, feed_forward: int = 0, heads: int = 0) -> float:
    """Compute buffer of a projector, 0 where a dimension is missing."""
    if min(image_size, patch_size, embedding) <= 0:
        return 0.0
    patches = (image_size // patch_size) ** 2
    width = feed_forward if feed_forward > 0 else 4 * embedding
    return _CLIP_FACTOR * (max(1, heads) * patches**2 * 4 + patches * (width + embedding) * 4) / GIB


def projector_clip_gib(projector: Header | None, flat_gib: float) -> float:
    """The compute buffer of this projector, the flat figure where its header doesn't say."""
    if projector is None:
        return flat_gib
    size = clip_gib(
        projector.vision_image_size,
        projector.vision_patch_size,
        projector.vision_embd,
        projector.vision_ffn,
        projector.vision_heads,
    )
    return size if size > 0 else flat_gib


def draft_overhead_gib(spec: str, draft_file_gib: float, draft_kind: str) -> float:
    """What drafting adds: the paired file and a little where the chain uses it, else the heads baked into the model."""
    size = draft_file_gib if draft_file_attaches(spec, draft_kind) else 0.0
    if size > 0:
        return size + _DRAFTER_EXTRA_GIB
    chain = spec_chain(spec)
    return _BAKED_HEAD_GIB if MTP in chain and DFLASH not in chain else 0.0


def mtp_slope_bytes(header: Header, type_k: str, type_v: str, spec: str, draft_file_gib: float) -> int:
    """Cache per token of a baked-in draft head; 0 where the chain or a paired file leaves it unused."""
    chain = effective_spec(header.nextn_layers > 0, "", spec)
    if header.nextn_layers <= 0 or draft_file_gib > 0 or MTP not in chain:
        return 0
    row_bytes = header.key_length * element_bytes(type_k) + header.value_length * element_bytes(type_v)
    return int(header.nextn_layers * header.head_count_kv * row_bytes)


def profile_target_gib(target_gib: float, overhead_gib: float, long: bool) -> float:
    """Long profiles keep half a GiB of headroom, whatever the setting says."""
    headroom = _LONG_HEADROOM_GIB - overhead_gib
    return target_gib - headroom if long and headroom > 0 and target_gib > headroom else target_gib
