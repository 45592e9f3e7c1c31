"""In which order the models of the list stand: from a few columns of each row, so that ten thousand take no time.

Only the rows of the page that is shown are loaded whole (listing.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject

from models_app.core.fields.choices import CATEGORIES
from models_app.models import Row, StoredPlan


class Judged(Protocol):
    """What the choice of a quant asks of a plan."""

    @property
    def verdict(self) -> str: ...
    @property
    def skip_reason(self) -> str: ...


class PlanLine(NamedTuple):
    """The base plan of a row, as far as an order or a choice asks for it."""

    verdict: str
    skip_reason: str
    ctx_tokens: int
    est_vram_bytes: int | None
    est_ram_bytes: int | None


class Line(NamedTuple):
    """A row, as far as an order or a choice asks for it."""

    pk: int
    host_id: int
    model_key: str
    path: str
    size_bytes: int
    served_id: str = ""
    slug: str = ""
    category: str = ""
    quant: str = ""
    state: str = ""
    family_key: str = ""
    plan: PlanLine | None = None


_GONE = frozenset({Row.State.MISSING, Row.State.OFFLINE})
Quant = TypeVar("Quant", Line, Row)
_FEW = ("pk", "host_id", "model_key", "path", "size_bytes")
_MORE = ("served_id", "host__slug", "category", "quant", "state", "family_key")
_BASE_PLAN = Subquery(
    StoredPlan.objects.filter(row=OuterRef("pk"))
    .order_by("id")
    .values(line=JSONObject(**{name: name for name in PlanLine._fields}))[:1]
)
"""The first plan of a row is that of its base profile."""


def _number(name: str) -> Callable[[Line], Any]:
    return lambda line: getattr(line.plan, name, 0) or 0


SORTS: Mapping[str, Callable[[Line], Any]] = {
    "name": lambda line: line.served_id.lower(),
    "host": lambda line: line.slug,
    "cat": lambda line: CATEGORIES.index(line.category) if line.category in CATEGORIES else 99,
    "quant": lambda line: line.quant,
    "size": lambda line: line.size_bytes,
    "ctx": _number("ctx_tokens"),
    "vram": _number("est_vram_bytes"),
    "ram": _number("est_ram_bytes"),
    "state": lambda line: line.state,
}
"""Column -> what it sorts by, of the quant that is shown."""


def ordered_groups(rows: QuerySet[Row], *, sort: str, families: bool, picks: frozenset[int]) -> list[list[int]]:
    """The numbers of the rows of each model, in the order of the list."""
    by_choice = bool(sort) or families
    groups = list(_grouped(_lines(rows, whole=by_choice)))
    if by_choice:
        shown = [(choose(group, picks, lambda line: line.plan), group) for group in groups]
        shown = _by_family(shown) if families else _sorted(shown, sort)
        groups = [group for _, group in shown]
    return [[line.pk for line in group] for group in groups]


def _lines(rows: QuerySet[Row], *, whole: bool) -> list[Line]:
    rows = rows.order_by("host__slug", "served_id", "path")
    # A distinct selection has to hold what it is sorted by.
    if not whole:
        return [Line(*columns[:5]) for columns in rows.values_list(*_FEW, "host__slug", "served_id")]
    found = rows.annotate(base=_BASE_PLAN).values_list(*_FEW, *_MORE, "base")
    return [Line._make((*columns, PlanLine(**base) if base else None)) for *columns, base in found]


def _grouped(lines: Sequence[Line]) -> Sequence[list[Line]]:
    """Rows of one host and model key together, in the order of their first row."""
    found: dict[tuple[int, str], list[Line]] = {}
    for line in lines:
        found.setdefault((line.host_id, line.model_key or line.path), []).append(line)
    return list(found.values())


def _sorted(shown: list[tuple[Line, list[Line]]], sort: str) -> list[tuple[Line, list[Line]]]:
    key = SORTS[sort.removeprefix("-")]
    return sorted(shown, key=lambda item: key(item[0]), reverse=sort.startswith("-"))


def _by_family(shown: list[tuple[Line, list[Line]]]) -> list[tuple[Line, list[Line]]]:
    """Families of several models first, in the order of their first member; then the models without relatives."""
    sizes = Counter(line.family_key for line, _ in shown)
    order: dict[str, int] = {}
    for line, _ in shown:
        order.setdefault(line.family_key, len(order))
    return sorted(shown, key=lambda item: (sizes[item[0].family_key] < 2, order[item[0].family_key]))


def choose(rows: Sequence[Quant], picks: frozenset[int], plan_of: Callable[[Quant], Judged | None]) -> Quant:
    """The quant a person picked, else the largest that fits, else the smallest of those with a plan.

    Files that are gone stand back behind those that are there.
    """
    picked = next((row for row in rows if row.pk in picks), None)
    if picked:
        return picked
    rows = [row for row in rows if row.state not in _GONE] or rows
    fitting = [row for row in rows if (plan := plan_of(row)) and plan.verdict == "fits"]
    if fitting:
        return max(fitting, key=lambda row: row.size_bytes)
    return min(rows, key=lambda row: (not _is_planned(plan_of(row)), row.size_bytes))


def _is_planned(plan: Judged | None) -> bool:
    return plan is not None and not plan.skip_reason
