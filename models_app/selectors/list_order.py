"""In which order the models of the list stand: from a few columns of each row, so that ten thousand take no time.

Only the rows of the page that is shown are loaded whole (listing.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from django.db.models import QuerySet

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

    row_id: int
    verdict: str
    skip_reason: str
    ctx_tokens: int
    est_vram_bytes: int | None
    est_ram_bytes: int | None


class Line(NamedTuple):
    """A row, as far as an order or a choice asks for it."""

    host_id: int
    model_key: str
    path: str
    pk: int
    size_bytes: int
    served_id: str = ""
    slug: str = ""
    category: str = ""
    quant: str = ""
    state: str = ""
    family_key: str = ""
    plan: PlanLine | None = None


_GONE = frozenset({Row.State.MISSING.value, Row.State.OFFLINE.value})
Quant = TypeVar("Quant", Line, Row)
_ORDER = ("host__slug", "served_id", "path")
"""Columns of the natural order; a distinct selection has to hold what it is sorted by."""
_COLUMNS = (
    *("host_id", "model_key", "path", "pk", "size_bytes"),
    *("served_id", "host__slug", "category", "quant", "state", "family_key"),
)


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
    rows = rows.order_by(*_ORDER)
    if not sort and not families:
        return _grouped(rows.values_list("host_id", "model_key", "path", "pk", *_ORDER[:2]))
    lines = _lines(rows)
    by_number = {line.pk: line for line in lines}
    shown = [(_chosen(group, by_number, picks), group) for group in _grouped(lines)]
    shown = _by_family(shown) if families else _sorted(shown, sort)
    return [group for _, group in shown]


def _chosen(group: Sequence[int], lines: Mapping[int, Line], picks: frozenset[int]) -> Line:
    """The quant that stands for a group; most groups are one file, and there are ten thousand of them."""
    if len(group) == 1:
        return lines[group[0]]
    return choose([lines[pk] for pk in group], picks, lambda line: line.plan)


def _lines(rows: QuerySet[Row]) -> list[Line]:
    """These rows with their plans, in two queries: a subquery for each of ten thousand rows would take its time."""
    found = StoredPlan.objects.filter(row__in=rows.order_by().values("pk")).order_by("-pk")
    # The first plan of a row is that of its base profile: it comes last here, and stays.
    plans = {columns[0]: PlanLine._make(columns) for columns in found.values_list(*PlanLine._fields)}
    return [Line._make((*columns, plans.get(columns[3]))) for columns in rows.values_list(*_COLUMNS)]


def _grouped(lines: Iterable[tuple[Any, ...]]) -> list[list[int]]:
    """Of (host, model key, path, number, …): the rows of one host and key together, in the order of their first."""
    found: dict[tuple[int, str], list[int]] = {}
    for line in lines:
        found.setdefault((line[0], line[1] or line[2]), []).append(line[3])
    return list(found.values())


def _sorted(shown: list[tuple[Line, list[int]]], sort: str) -> list[tuple[Line, list[int]]]:
    key = SORTS[sort.removeprefix("-")]
    return sorted(shown, key=lambda item: key(item[0]), reverse=sort.startswith("-"))


def _by_family(shown: list[tuple[Line, list[int]]]) -> list[tuple[Line, list[int]]]:
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
    if len(rows) == 1:
        return rows[0]
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
