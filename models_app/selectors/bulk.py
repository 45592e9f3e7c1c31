"""The models that a bulk edit is about."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from models_app.models import Row
from models_app.selectors.listing import ModelFilter, filtered
from models_app.selectors.sight import seen_rows


def chosen_rows(pks: Collection[int], most: int, user: Any) -> list[Row]:
    """These rows in the order of the list, at most so many; what is gone meanwhile or hidden is left out."""
    return _ordered(seen_rows(user).filter(pk__in=list(pks)))[:most]


def shown_rows(wanted: ModelFilter, most: int, user: Any) -> list[Row]:
    """All rows that a filter of the list leaves, every quant of its own."""
    return _ordered(filtered(wanted, user).distinct())[:most]


def _ordered(rows: Any) -> list[Row]:
    served = rows.exclude(model_class="").select_related("host")
    return list(served.order_by("host__slug", "served_id", "path"))
