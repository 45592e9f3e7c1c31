"""What each override row reaches: which models it matches, which it wins, and which earlier row takes the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from models_app.core.settings import Override
from models_app.core.state.globs import covers_all, glob_match, is_glob
from models_app.core.state.overrides import takes_quant


@dataclass(frozen=True, slots=True)
class RowReach:
    """What one row reaches. Models and rows are named by their places in the lists that were asked about."""

    winners: Mapping[int, int]
    """Model that the row matches -> the row that applies to it: this one, or an earlier one."""
    covered_by: int | None
    """The first earlier row that matches all that this one ever could: it can never win."""

    def won(self, row: int) -> tuple[int, ...]:
        """The models that follow it; `row` is its own place."""
        return tuple(model for model, winner in self.winners.items() if winner == row)


def row_reach(
    rows: Sequence[Override], models: Sequence[tuple[str, str]], key: Callable[[str], str] = str.lower
) -> list[RowReach]:
    """For each row, in the order of resolution; `models` are (path, quant). Equal keys are paths of one file."""
    exact: dict[str, list[int]] = {}
    patterns = [index for index, row in enumerate(rows) if is_glob(row.match)]
    for index, row in enumerate(rows):
        if not is_glob(row.match):
            exact.setdefault(key(row.match), []).append(index)
    winners: list[dict[int, int]] = [{} for _ in rows]
    for model, (path, quant) in enumerate(models):
        candidates = [*exact.get(key(path), ()), *(index for index in patterns if glob_match(rows[index].match, path))]
        matching = sorted(index for index in candidates if takes_quant(rows[index], quant))
        for index in matching:
            winners[index][model] = matching[0]
    return [RowReach(found, _covered_by(rows, index)) for index, found in enumerate(winners)]


def _covered_by(rows: Sequence[Override], index: int) -> int | None:
    row = rows[index]
    earlier = (place for place, other in enumerate(rows[:index]) if _covers_row(other, row))
    return next(earlier, None) if is_glob(row.match) else None


def _covers_row(wide: Override, narrow: Override) -> bool:
    if not is_glob(wide.match):
        return False
    return takes_quant(wide, narrow.quant) and covers_all(wide.match, narrow.match)
