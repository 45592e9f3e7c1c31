"""Overrides as a table for spreadsheets: one line a setting, no cell that one would run as a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator

from models_app.core.fields import OVERRIDE_FIELDS, VARIANT_FIELDS, Field
from models_app.core.settings import Override, SharedFields
from models_app.core.state.typed import control_text

COLUMNS = ("match", "quant", "models", "variant", "setting", "label", "value")
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_ELSEWHERE = frozenset({"match", "quant", "variants", "name"})


def overrides_table(rows: Iterable[Override], ids_of: Callable[[Override], Iterable[str]]) -> str:
    """The text of the table in the order of the rows. `ids_of` names the models for which a row counts."""
    stream = io.StringIO()
    table = csv.writer(stream)
    table.writerow(COLUMNS)
    for row in rows:
        about = (row.match, row.quant, " ".join(ids_of(row)))
        for cells in _lines(row):
            table.writerow([safe_cell(cell) for cell in (*about, *cells)])
    return stream.getvalue()


def _lines(row: Override) -> Iterator[tuple[str, ...]]:
    """Variant, key, label, value; a row or variant that sets nothing has one line all the same."""
    yield from _settings(row, "", OVERRIDE_FIELDS)
    for variant in row.variants:
        yield from _settings(variant, variant.name, VARIANT_FIELDS)


def _settings(pinned: SharedFields, variant: str, fields: Iterable[Field]) -> Iterator[tuple[str, ...]]:
    texts = [
        (variant, field.key, field.label, control_text(field, value))
        for field in fields
        if field.key not in _ELSEWHERE and field.is_set(value := _plain(getattr(pinned, field.attribute)))
    ]
    yield from texts or [(variant, "", "", "")]


def _plain(value: object) -> object:
    """Records as the maps that forms have."""
    if isinstance(value, tuple) and value and hasattr(value[0], "scale"):
        return [{"path": item.path, "scale": item.scale} for item in value]
    return value


def safe_cell(text: str) -> str:
    """A cell that a spreadsheet would run as a formula, marked as text; numbers stay numbers."""
    is_formula = text.lstrip(" ").startswith(_FORMULA_SIGNS) or text.startswith(_FORMULA_SIGNS)
    return f"'{text}" if is_formula and not _NUMBER.fullmatch(text) else text
