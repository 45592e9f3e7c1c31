"""Candidates for one role, best first, and which of the criteria told the first from the second."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models_app.core.components.pool import PoolEntry

ONLY = "only"
"""There is no other candidate."""
PATH = "path"
"""No criterion tells them apart: the order of their paths decided, which means nothing."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """`because` names the criterion that decided, `ONLY`, `PATH`, or nothing where there is no candidate.

    `equals` are the candidates as good as the first by every criterion, without it.
    """

    entries: tuple[PoolEntry, ...] = ()
    because: str = ""
    equals: tuple[PoolEntry, ...] = ()

    @property
    def best(self) -> PoolEntry | None:
        return self.entries[0] if self.entries else None

    @property
    def path(self) -> str:
        """Path of the best, "" for none."""
        return self.entries[0].path if self.entries else ""


def rank(entries: Iterable[PoolEntry], **criteria: Callable[[PoolEntry], int]) -> Ranking:
    """Sort by the criteria in their order, lower first; what is equal keeps the given order."""
    keyed = [(tuple(criterion(entry) for criterion in criteria.values()), entry) for entry in entries]
    keyed.sort(key=lambda pair: pair[0])
    ranked = tuple(entry for _, entry in keyed)
    if len(keyed) < 2:
        return Ranking(ranked, ONLY if keyed else "")
    first, second = keyed[0][0], keyed[1][0]
    because = next((name for name, *pair in zip(criteria, first, second, strict=True) if pair[0] != pair[1]), PATH)
    return Ranking(ranked, because, tuple(entry for key, entry in keyed[1:] if key == first))
