"""Memory beside llama.cpp's own projection: projector, drafter, context checkpoints (sizing.md 7, 18.7 and 18.8)."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.catalog import Header, TermPart
from models_app.core.planning.checkpoints import Checkpoints
from models_app.core.planning.classic_overheads import projector_clip_gib
from models_app.core.planning.context import STATE_ELEMENT_BYTES, cache_bytes
from models_app.core.planning.geometry import CELL_MULTIPLE
from models_app.core.planning.kv_types import KvPair, element_bytes
from models_app.core.planning.model_facts import ModelTable
from models_app.core.planning.question import Question
from models_app.core.units import GIB, from_gib, pad

DRAFT_FILE_EXTRA_BYTES = from_gib(0.1)
"""Cache and graph of a paired draft model."""

DEFAULT_VISION_BYTES = GIB


@dataclass(frozen=True, slots=True)
class Projector:
    """A projector of one profile. `clip_bytes` is its compute buffer."""

    file_bytes: int
    clip_bytes: int
    in_ram: bool = True

    @property
    def total_bytes(self) -> int:
        return self.file_bytes + self.clip_bytes


def projector_of(header: Header | None, file_bytes: int, flat_gib: float, *, in_ram: bool) -> Projector:
    """The projector that the profile really loads; the flat figure stands in where its header has no dimensions."""
    return Projector(file_bytes, from_gib(projector_clip_gib(header, flat_gib)), in_ram)


@dataclass(frozen=True, slots=True)
class BakedHead:
    """The context that `draft-mtp` opens on the model's own draft blocks (sizing.md 18.8)."""

    table: ModelTable
    header: Header
    question: Question
    own_k: str = ""
    own_v: str = ""
    """Types of its cache where they are pinned; blank: those of the main context."""

    def bytes_at(self, ctx_tokens: int, pair: KvPair) -> int:
        """Weights, cache and compute buffer for this window of one slot."""
        cells = self._cells(ctx_tokens)
        caches = sum(size for _, size, _ in self._caches(cells, pair))
        return self.table.nextn_bytes + caches + self._compute(cells, ctx_tokens)

    def parts_at(self, ctx_tokens: int, pair: KvPair, place: int | None) -> tuple[TermPart, ...]:
        """The addends of `bytes_at`."""
        cells = self._cells(ctx_tokens)
        parts = [TermPart(place, "draft blocks", self.table.nextn_bytes)]
        parts += [TermPart(place, name, size, factors) for name, size, factors in self._caches(cells, pair)]
        return (*parts, TermPart(place, "compute buffer of its own", self._compute(cells, ctx_tokens)))

    def _cells(self, ctx_tokens: int) -> int:
        return pad(ctx_tokens * self.question.slots, CELL_MULTIPLE)

    def _caches(self, cells: int, pair: KvPair) -> list[tuple[str, int, tuple[tuple[float, str], ...]]]:
        """K and V of the draft blocks: name, bytes, and what they are the product of."""
        header = self.header
        sides = [("K", header.key_length, self.own_k or pair.k), ("V", header.value_length, self.own_v or pair.v)]
        if self.table.latent:  # one compressed row for K and V together
            sides.pop()
        found = []
        for name, length, kv_type in sides:
            width = header.head_count_kv * length
            size = cache_bytes(cells * header.nextn_layers * width, kv_type)
            layers = "layers" if header.nextn_layers > 1 else "layer"
            factors: tuple[tuple[float, str], ...] = (
                (cells, "cells"),
                (header.nextn_layers, layers),
                (width, "values"),
                (element_bytes(kv_type), f"bytes of {kv_type}"),
            )
            found.append((f"{name} of the drafts", size, factors))
        return found

    def _compute(self, cells: int, ctx_tokens: int) -> int:
        ubatch = min(self.question.ubatch, ctx_tokens)
        width, token_bytes = self.table.embedding, 4 * ubatch
        widest = max((max(item.feed_forward, item.experts) for item in self.table.working_sets), default=0)
        feed_forward = token_bytes * (widest + 3 * width)
        attention = token_bytes * (2 * width + 3 * self.header.head_count * self.header.key_length)
        mask = (2 if self.question.flash_attn else 4) * ubatch * cells
        return max(feed_forward, mask + attention)


def checkpoint_bytes(table: ModelTable, checkpoints: Checkpoints, ctx_tokens: int, slots: int, pair: KvPair) -> int:
    """RAM of all checkpoints of all slots. Plain attention models take none."""
    count = checkpoint_count(checkpoints, ctx_tokens)
    return count * max(1, slots) * one_checkpoint_bytes(table, ctx_tokens, pair)


def checkpoint_count(checkpoints: Checkpoints, ctx_tokens: int) -> int:
    """Checkpoints of one slot: no more than a window of this length has room for."""
    return max(0, min(checkpoints.count, ctx_tokens // max(1, checkpoints.spacing)))


def one_checkpoint_bytes(table: ModelTable, ctx_tokens: int, pair: KvPair) -> int:
    """The cells of the sliding layers that are in use, or the recurrent state of one slot."""
    sums = table.sums
    cells = min(table.window, ctx_tokens)
    window = cache_bytes(cells * sums.k_sliding[-1], pair.k) + cache_bytes(cells * sums.v_sliding[-1], pair.v)
    return window + STATE_ELEMENT_BYTES * (sums.state_r[-1] + sums.state_s[-1])


def keeps_checkpoints(table: ModelTable) -> bool:
    return table.window > 0 or table.is_recurrent
