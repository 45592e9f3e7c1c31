"""The guard against a file that drops many models at once (web.md 11.4, V-18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.export.revisions.compare import Difference

MASS_CHANGE = "V-18"
SHARE = 0.30
FEWEST = 3


@dataclass(frozen=True, slots=True)
class MassChange:
    """`roots` are folders that could not be read, or not completely: what lies there may only seem to be gone."""

    dropped: int = 0
    live: int = 0
    roots: tuple[str, ...] = ()

    @property
    def drops_many(self) -> bool:
        """More than 30 % and at least three, or every one of them."""
        return self.dropped > 0 and (
            self.dropped == self.live or (self.dropped >= FEWEST and self.dropped > SHARE * self.live)
        )

    @property
    def holds(self) -> bool:
        """Must a person confirm it? Writing by itself never does."""
        return self.drops_many or bool(self.roots)


def mass_change(difference: Difference, unread_roots: Sequence[str] = ()) -> MassChange:
    return MassChange(difference.of("removed"), difference.before, tuple(unread_roots))
