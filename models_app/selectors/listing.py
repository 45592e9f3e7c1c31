"""The models list: filters, quants of one model on one line, sorting, paging. A handful of queries for any number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Prefetch, Q, QuerySet

from models_app.core.fields.choices import CATEGORIES
from models_app.models import Override, Row, StoredPlan
from models_app.selectors.list_order import SORTS, choose, ordered_groups
from models_app.selectors.sight import seen_rows
from quartermaster_site.access.grants import grants_of
from quartermaster_site.access.rules import Level

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
    "editable": "That I may edit",
}
"""Choice of the state filter -> its label."""
EDITABLE = "editable"
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


def group_of(row: Row, user: Any) -> ModelGroup:
    """The model of a row as a person sees it, with this row as the quant that is shown."""
    siblings = seen_rows(user).filter(host_id=row.host_id)
    siblings = siblings.filter(model_key=row.model_key) if row.model_key else siblings.filter(pk=row.pk)
    [group] = _with_authors([_group(list(_with_plans(siblings)), frozenset({row.pk}))])
    return group


def model_list(wanted: ModelFilter, user: Any) -> ModelPage:
    """The page of the list that the filter names. What is hidden from the person is in no figure of it."""
    categories, all_rows = _counts(wanted, user)
    order = ordered_groups(filtered(wanted, user), sort=wanted.sort, families=wanted.families, picks=wanted.picks)
    pages = max(-(-len(order) // PAGE_SIZE), 1)
    start = (min(wanted.page, pages) - 1) * PAGE_SIZE
    row_total = sum(map(len, order))
    return ModelPage(
        filter=wanted,
        groups=_with_authors(_loaded(order[start : start + PAGE_SIZE], wanted.picks)),
        group_total=len(order),
        row_total=row_total,
        hidden=all_rows - row_total,
        pages=pages,
        categories={name: categories[name] for name in CATEGORIES if categories.get(name)},
    )


def _counts(wanted: ModelFilter, user: Any) -> tuple[Mapping[str, int], int]:
    """Category -> rows under the other filters, and the number of all rows, in one query."""
    rows, others = seen_rows(user).order_by(), replace(wanted, cat="")
    left = Q(pk__in=filtered(others, user).order_by().values("pk")) if others.is_active else None
    counted = rows.values_list("category").annotate(all=Count("pk"), left=Count("pk", filter=left))
    found = list(counted)
    return {category: left for category, _, left in found}, sum(number for _, number, _ in found)


def states_for(user: Any) -> Mapping[str, str]:
    """Choices of the state filter. Only those who may edit some models and others not are asked about that."""
    grants = grants_of(user)
    differs = grants.reaches(Level.EDIT) and grants.condition(level=Level.EDIT) is not None
    return {name: label for name, label in STATES.items() if name != EDITABLE or differs}


def filtered(wanted: ModelFilter, user: Any) -> QuerySet[Row]:
    """The rows that a filter leaves, of those that a person may see."""
    rows = seen_rows(user)
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
    return grants_of(user).seen(rows, level=Level.EDIT) if wanted.state == EDITABLE else _in_state(rows, wanted.state)


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


def _loaded(order: Sequence[Sequence[int]], picks: frozenset[int]) -> list[ModelGroup]:
    """The rows of these groups, whole."""
    rows = {row.pk: row for row in _with_plans(Row.objects.filter(pk__in=[pk for group in order for pk in group]))}
    groups = ([rows[pk] for pk in group if pk in rows] for group in order)
    return [_group(members, picks) for members in groups if members]


def _group(rows: Sequence[Row], picks: frozenset[int]) -> ModelGroup:
    key = f"{rows[0].host_id}:{rows[0].model_key or rows[0].path}"
    return ModelGroup(key, choose(rows, picks, base_plan), rows)


def _with_authors(groups: Sequence[ModelGroup]) -> list[ModelGroup]:
    paths = [group.chosen.path for group in groups]
    authors = {
        (host_id, match): name
        for host_id, match, name in Override.objects.filter(match__in=paths).values_list(
            "host_id", "match", "changed_by__username"
        )
    }
    return [replace(group, changed_by=authors.get((group.chosen.host_id, group.chosen.path)) or "") for group in groups]
