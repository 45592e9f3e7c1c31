"""Which override row applies to a model, and the `none` sentinel (state.md 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from models_app.core.errors import SettingsError
from models_app.core.fields import SENTINEL_FIELDS
from models_app.core.settings import Override
from models_app.core.state.globs import glob_match, is_glob

NONE = "none"


def is_none(text: str) -> bool:
    """The sentinel that says "explicitly nothing". A file of that name is written `./none`."""
    return text.strip().lower() == NONE


def normalise_none(override: Override) -> Override:
    """At model level blank means nothing already, so the sentinel is cleared. Variants are never normalised."""
    cleared: dict[str, Any] = {
        field.attribute: ""
        for field in SENTINEL_FIELDS
        if field.on_override and is_none(getattr(override, field.attribute))
    }
    return replace(override, **cleared) if cleared else override


def merge_overrides(ui_rows: Iterable[Override], file_rows: Iterable[Override]) -> tuple[Override, ...]:
    """All rows in the order of resolution: the UI's exact rows, its globs, then the file's; order kept inside each.

    Raises `SettingsError` for a row without a match, with its index in the merged list.
    """
    own = tuple(ui_rows)
    rows = (
        *(row for row in own if not is_glob(row.match)),
        *(row for row in own if is_glob(row.match)),
        *file_rows,
    )
    for index, row in enumerate(rows):
        if not row.match.strip():
            raise SettingsError(f"overrides[{index}]: match is required")
    return tuple(normalise_none(row) for row in rows)


def resolve_index(
    rows: Sequence[Override], path: str, quant: str, same_path: Callable[[str, str], bool] | None = None
) -> int | None:
    """The first row that covers the path, and whose quant, if any, is the model's; None if there is none.

    `same_path` compares rows without wildcards by path identity; left out, they are compared like patterns.
    """
    return next((index for index, row in enumerate(rows) if covers(row, path, quant, same_path)), None)


def covers(row: Override, path: str, quant: str, same_path: Callable[[str, str], bool] | None = None) -> bool:
    """Whether a row applies to a model, if no earlier one does."""
    if not takes_quant(row, quant):
        return False
    matches = glob_match if same_path is None or is_glob(row.match) else same_path
    return matches(row.match, path)


def takes_quant(row: Override, quant: str) -> bool:
    """Whether a row is for models of a quantisation; one that names none is for all."""
    return row.quant.strip().lower() in ("", quant.strip().lower())


def resolve_override(
    rows: Sequence[Override], path: str, quant: str, same_path: Callable[[str, str], bool] | None = None
) -> Override | None:
    """The row that applies to a model. Rows shadow each other as a whole: fields never mix."""
    index = resolve_index(rows, path, quant, same_path)
    return None if index is None else rows[index]
