"""Drafters and projectors inherited inside a family (discovery.md 9).

A sidecar fits every quant of a model but is usually downloaded into one folder only. The name never decides alone: the
headers of giver and taker must agree, because llama-server exits at load when a drafter's vocabulary differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from models_app.core.catalog import Header, Row
from models_app.core.discovery.families import family_key, model_base_key


@dataclass(frozen=True, slots=True)
class Gate:
    """The facts that giver and taker must share. Blank or zero is unknown, and unknown never matches."""

    architecture: str
    embedding_length: int
    block_count: int
    vocab_size: int

    @property
    def is_known(self) -> bool:
        return bool(self.architecture) and min(self.embedding_length, self.block_count, self.vocab_size) > 0


def gate_of(header: Header) -> Gate:
    """The gate of a model, all four the same for every quant of it."""
    return Gate(header.architecture.strip().lower(), header.embedding_length, header.block_count, header.vocab_size)


def are_compatible(one: Header, other: Header) -> bool:
    """May a sidecar of one model serve the other?"""
    gate = gate_of(one)
    return gate.is_known and gate == gate_of(other)


def inherit(rows: Sequence[Row], gates: Mapping[str, Gate]) -> list[Row]:
    """The rows with blank drafters and projectors filled from relatives; `gates` by path, absent for unreadable.

    Both are chosen on their own and may come from two givers. Givers are the rows that have one when the pass starts.
    """
    drafters = _Givers((row for row in rows if row.draft_path), gates)
    projectors = _Givers((row for row in rows if row.mmproj_path), gates)
    filled = []
    for row in rows:
        if not row.draft_path and (found := drafters.best_for(row)):
            origin, giver = found
            row = replace(
                row,
                draft_path=giver.draft_path,
                draft_kind=giver.draft_kind,
                draft_size_bytes=giver.draft_size_bytes,
                draft_origin=origin,
            )
        if not row.mmproj_path and (found := projectors.best_for(row)):
            origin, giver = found
            row = replace(
                row,
                mmproj_path=giver.mmproj_path,
                mmproj_size_bytes=giver.mmproj_size_bytes,
                mmproj_origin=origin,
            )
        filled.append(row)
    return filled


def inherit_by_root(rows: Sequence[Row], gates: Mapping[str, Gate]) -> list[Row]:
    """Relatives of the same root first; then once more over all, which only fills what is still blank."""
    by_root: dict[str, list[Row]] = {}
    for row in rows:
        by_root.setdefault(row.root, []).append(row)
    filled = [row for part in by_root.values() for row in inherit(part, gates)]
    return inherit(filled, gates) if len(by_root) > 1 else filled


class _Givers:
    """The best giver for each degree of kinship, prepared so that each row costs a few look-ups."""

    def __init__(self, givers: Iterable[Row], gates: Mapping[str, Gate]) -> None:
        self._gates = gates
        self._best: dict[tuple[Gate, str, str, str], Row] = {}
        for row in givers:
            gate = self._gate(row)
            if gate is None:
                continue
            for kinship, key in (("base", model_base_key(row.base_id)), ("family", family_key(row.base_id))):
                for quant in {"", row.quant.lower()}:
                    place = (gate, kinship, key, quant)
                    known = self._best.get(place)
                    if known is None or _rank(row) < _rank(known):
                        self._best[place] = row

    def best_for(self, row: Row) -> tuple[str, Row] | None:
        """Another quant of the same model, else the un-tuned base, else a finetune; same quant first in each.

        The relation comes first, as `Row.draft_origin` names it.
        """
        gate = self._gate(row)
        if gate is None:
            return None
        base, family = model_base_key(row.base_id), family_key(row.base_id)
        for origin, kinship, key in (("quant", "base", base), ("base", "base", family), ("family", "family", family)):
            for quant in (row.quant.lower(), ""):
                if giver := self._best.get((gate, kinship, key, quant)):
                    return origin, giver
        return None

    def _gate(self, row: Row) -> Gate | None:
        gate = self._gates.get(row.full_path)
        return gate if gate is not None and gate.is_known and row.base_id.strip() else None


def _rank(row: Row) -> tuple[int, str]:
    return -row.size_bytes, row.full_path
