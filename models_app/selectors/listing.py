"""The models list: filters, quants of one model on one line, sorting, paging. A handful of queries for any number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Prefetch, Q, QuerySet

from models_app.core.fields.choices import CATEGORIES
from models_app.models import Override, Row, StoredPlan

PAGE_SIZE = 100
MAX_TEXT = 200
STATES: Mapping[str, str] = {
    "present": "On disk",
    "offline": "Offline",
    "missing": "Missing",
    "unreadable": "Header unreadable",
    "warning": "With warnings",
    "spills": "Spills to the CPU",
    "unknown": "Cannot be judged",
    "over": "Does not fit",
    "skipped": "Not served",
    "changed": "With own settings",
}
"""Choice of the state filter -> its label."""
PLAN_WARNS = Q(plans__warning_count__gt=0) | Q(plans__verdict__in=("over", "unknown"))
"""Rows with a plan that somebody should look at: it carries a warning, does not fit or cannot be judged."""


@dataclass(frozen=True, slots=True)
class ModelFilter:
    """What the address of the list says. Unknown words are dropped, so that an old link still works."""

    q: str = ""
    host: str = ""
    cat: str = ""
    state: str = ""
    sort: str = ""
    families: bool = False
    """Models of one family together: a base model and its finetunes."""
    page: int = 1
    picks: frozenset[int] = frozenset()
    """Rows that a person chose as the shown quant of their model."""

    @classmethod
    def from_query(cls, query: Any) -> ModelFilter:
        """From `request.GET`."""
        sort = query.get("sort", "")
        cat = query.get("cat", "")
        state = query.get("state", "")
        picks = [int(text) for text in query.getlist("pick")[:PAGE_SIZE] if text.isascii() and text.isdigit()]
        page = query.get("page", "1")
        return cls(
            q=query.get("q", "").strip()[:MAX_TEXT].replace("\x00", ""),
            host=query.get("host", "").strip()[:40].replace("\x00", ""),
            cat=cat if cat in CATEGORIES else "",
            state=state if state in STATES else "",
            sort=sort if sort.removeprefix("-") in SORTS else "",
            families=query.get("group") == "family",
            page=min(max(int(page), 1), 10_000) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
            picks=frozenset(pick for pick in picks if pick < 1 << 62),
        )

    def query(self, **changes: Any) -> str:
        """The query string of this filter with some parts changed; blank parts are left out."""
        new = replace(self, **changes)
        pairs = [(name, getattr(new, name)) for name in ("q", "host", "cat", "state", "sort") if getattr(new, name)]
        if new.families:
            pairs.append(("group", "family"))
        if new.page > 1:
            pairs.append(("page", new.page))
        pairs += [("pick", pick) for pick in sorted(new.picks)]
        return f"?{urlencode(pairs)}" if pairs else "?"

    @property
    def is_active(self) -> bool:
        return bool(self.q or self.host or self.cat or self.state)


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """One model: its quants, and the one whose figures the line shows."""

    key: str
    chosen: Row
    rows: Sequence[Row]
    changed_by: str = ""

    @property
    def base(self) -> StoredPlan | None:
        """The plan of the chosen quant's base profile; None before the first planning."""
        return base_plan(self.chosen)

    @property
    def profiles(self) -> Sequence[StoredPlan]:
        return list(self.chosen.plans.all())


@dataclass(frozen=True, slots=True)
class ModelPage:
    """One page of the list and what stands around it."""

    filter: ModelFilter
    groups: Sequence[ModelGroup]
    group_total: int
    row_total: int
    """Rows behind the groups of all pages."""
    hidden: int
    """Rows that the filters keep out."""
    pages: int
    categories: Mapping[str, int] = field(default_factory=dict)
    """Category -> rows, under the other filters."""

    @property
    def page(self) -> int:
        return min(self.filter.page, self.pages)


def base_plan(row: Row) -> StoredPlan | None:
    """The base profile's plan, of the prefetched ones."""
    return next(iter(row.plans.all()), None)


def group_of(row: Row) -> ModelGroup:
    """The model of a row, with this row as the quant that is shown."""
    siblings = Row.objects.filter(host_id=row.host_id)
    siblings = siblings.filter(model_key=row.model_key) if row.model_key else siblings.filter(pk=row.pk)
    [group] = _with_authors(_grouped(list(_with_plans(siblings)), frozenset({row.pk})))
    return group


def _number(name: str) -> Callable[[ModelGroup], Any]:
    return lambda group: getattr(group.base, name, 0) or 0


SORTS: Mapping[str, Callable[[ModelGroup], Any]] = {
    "name": lambda group: group.chosen.served_id.lower(),
    "host": lambda group: group.chosen.host.slug,
    "cat": lambda group: CATEGORIES.index(group.chosen.category) if group.chosen.category in CATEGORIES else 99,
    "quant": lambda group: group.chosen.quant,
    "size": lambda group: group.chosen.size_bytes,
    "ctx": _number("ctx_tokens"),
    "vram": _number("est_vram_bytes"),
    "ram": _number("est_ram_bytes"),
    "state": lambda group: group.chosen.state,
}


def model_list(wanted: ModelFilter) -> ModelPage:
    """The page of the list that the filter names."""
    everything = _filtered(replace(wanted, cat=""))
    categories = dict(everything.order_by().values_list("category").annotate(Count("id")))
    rows = list(_with_plans(_filtered(wanted)))
    groups = _grouped(rows, wanted.picks)
    if wanted.families:
        groups = _by_family(groups)
    elif wanted.sort:
        groups.sort(key=SORTS[wanted.sort.removeprefix("-")], reverse=wanted.sort.startswith("-"))
    pages = max(-(-len(groups) // PAGE_SIZE), 1)
    start = (min(wanted.page, pages) - 1) * PAGE_SIZE
    shown = groups[start : start + PAGE_SIZE]
    return ModelPage(
        filter=wanted,
        groups=_with_authors(shown),
        group_total=len(groups),
        row_total=len(rows),
        hidden=Row.objects.count() - len(rows) if wanted.is_active else 0,
        pages=pages,
        categories={name: categories[name] for name in CATEGORIES if categories.get(name)},
    )


def _filtered(wanted: ModelFilter) -> QuerySet[Row]:
    rows = Row.objects.all()
    for word in wanted.q.split()[:8]:
        names = ("served_id", "file_name", "path", "publisher", "quant", "architecture")
        hit = Q()
        for name in names:
            hit |= Q(**{f"{name}__icontains": word})
        rows = rows.filter(hit)
    if wanted.host:
        rows = rows.filter(host__slug=wanted.host)
    if wanted.cat:
        rows = rows.filter(category=wanted.cat)
    return _in_state(rows, wanted.state)


def _in_state(rows: QuerySet[Row], state: str) -> QuerySet[Row]:
    if state in Row.State.values:
        return rows.filter(state=state)
    if state == "warning":
        return rows.filter(PLAN_WARNS).distinct()
    if state in ("over", "spills", "unknown"):
        return rows.filter(plans__verdict=state).distinct()
    if state == "skipped":
        return rows.exclude(plans__skip_reason="").filter(plans__isnull=False).distinct()
    if state == "changed":
        return rows.filter(path__in=Override.objects.values("match"))
    return rows


def _with_plans(rows: QuerySet[Row]) -> QuerySet[Row]:
    plans = Prefetch("plans", queryset=StoredPlan.objects.order_by("id"))
    return (
        rows.select_related("host").defer("found").prefetch_related(plans).order_by("host__slug", "served_id", "path")
    )


def _grouped(rows: Sequence[Row], picks: frozenset[int]) -> list[ModelGroup]:
    """Rows of one host and model key together, in the order of their first row."""
    found: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.host_id, row.model_key or row.path), []).append(row)
    return [ModelGroup(f"{host}:{key}", _chosen(members, picks), members) for (host, key), members in found.items()]


def _by_family(groups: list[ModelGroup]) -> list[ModelGroup]:
    """Families of several models first, in the order of their first member; then the models without relatives."""
    sizes = Counter(group.chosen.family_key for group in groups)
    order: dict[str, int] = {}
    for group in groups:
        order.setdefault(group.chosen.family_key, len(order))
    return sorted(groups, key=lambda group: (sizes[group.chosen.family_key] < 2, order[group.chosen.family_key]))


def _chosen(rows: Sequence[Row], picks: frozenset[int]) -> Row:
    """The quant a person picked, else the largest that fits, else the smallest of those with a plan."""
    picked = next((row for row in rows if row.pk in picks), None)
    if picked:
        return picked
    fitting = [row for row in rows if (plan := base_plan(row)) and plan.verdict == "fits"]
    if fitting:
        return max(fitting, key=lambda row: row.size_bytes)
    return min(rows, key=lambda row: (not _is_planned(row), row.size_bytes))


def _is_planned(row: Row) -> bool:
    plan = base_plan(row)
    return plan is not None and not plan.skip_reason


def _with_authors(groups: Sequence[ModelGroup]) -> list[ModelGroup]:
    paths = [group.chosen.path for group in groups]
    authors = {
        (host_id, match): name
        for host_id, match, name in Override.objects.filter(match__in=paths).values_list(
            "host_id", "match", "changed_by__username"
        )
    }
    return [replace(group, changed_by=authors.get((group.chosen.host_id, group.chosen.path)) or "") for group in groups]
