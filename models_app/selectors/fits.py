"""The text models of a host as the table of what fits asks for them: one query, without headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import F, FilteredRelation, Q

from gpus_app.models import Host
from models_app.core.fields import KV_TYPES
from models_app.models import Row
from models_app.selectors.listing import MAX_TEXT
from models_app.selectors.sight import seen_rows

SLOTS = (1, 2, 4, 8)
SHOWS = {
    "": "Everything",
    "gpu": "All on the GPU",
    "fits": "Fits, parts in RAM or not",
    "over": "Does not fit",
}
"""Choice of the filter by result -> its label."""
DEFAULT_TIER = 32768
PLAIN_SORTS = ("name", "size", "planned")


@dataclass(frozen=True, slots=True)
class FitsFilter:
    """What the address of the table says. Unknown words are dropped."""

    q: str = ""
    kv: str = ""
    """A cache type to plan with; blank: as stored."""
    parallel: int = 0
    """Conversations to plan for; 0: as stored."""
    show: str = ""
    at: int = DEFAULT_TIER
    """The window that `show` is about."""
    best: bool = False
    """One file a model: the one that the list of models shows."""
    sort: str = ""
    page: int = 1
    whole: bool = False
    """All models on one page, for printing."""

    @classmethod
    def from_query(cls, query: Any) -> FitsFilter:
        """From `request.GET`."""
        kv, show, sort = query.get("kv", ""), query.get("show", ""), query.get("sort", "")
        parallel = _number(query.get("parallel", ""))
        return cls(
            q=query.get("q", "").strip()[:MAX_TEXT].replace("\x00", ""),
            kv=kv if kv in KV_TYPES else "",
            parallel=parallel if parallel in SLOTS else 0,
            show=show if show in SHOWS else "",
            at=_number(query.get("at", "")) or DEFAULT_TIER,
            best=query.get("best") == "1",
            sort=sort if sort.removeprefix("-") in PLAIN_SORTS or _number(sort.removeprefix("-")) else "",
            page=max(_number(query.get("page", "")), 1),
            whole=query.get("rows") == "all",
        )

    def query(self, **changes: Any) -> str:
        """The query string of this filter with some parts changed; what is automatic is left out."""
        new = replace(self, **changes)
        pairs: list[tuple[str, Any]] = [(name, getattr(new, name)) for name in ("q", "kv", "parallel", "show", "sort")]
        pairs += [("at", new.at if new.at != DEFAULT_TIER else ""), ("best", "1" if new.best else "")]
        pairs += [("rows", "all" if new.whole else ""), ("page", new.page if new.page > 1 else "")]
        return f"?{urlencode([(name, value) for name, value in pairs if value])}"


@dataclass(frozen=True, slots=True)
class FitsRow:
    """One file, and the plan in force for it. `version` changes whenever another answer could be due."""

    pk: int
    path: str
    served_id: str
    base_id: str
    quant: str
    quant_label: str
    size_bytes: int
    model_key: str
    planned_verdict: str
    planned_tokens: int
    placement_text: str
    excesses: Sequence[Any]
    """What checks have shown of it, as the row keeps it."""
    version: tuple[Any, ...]


_COLUMNS = (
    "pk", "path", "served_id", "base_id", "quant", "quant_label", "size_bytes", "model_key",
    "base_plan__verdict", "base_plan__ctx_tokens", "base_plan__placement_text", "excesses",
    "mtime_ns", "last_scan_id", "header__read_at", "state",
)  # fmt: skip


def fits_rows(host: Host, wanted: FitsFilter, user: Any) -> Sequence[FitsRow]:
    """By name, of those that a person sees. Rows whose header could not be read, or that are gone, have no answer and
    are left out.
    """
    rows = seen_rows(user).filter(host=host, model_class="llm", header__facts__isnull=False)
    rows = rows.exclude(state__in=[Row.State.MISSING, Row.State.UNREADABLE])
    for word in wanted.q.split()[:8]:
        names = ("served_id", "file_name", "path", "publisher", "quant", "architecture")
        rows = rows.filter(Q.create([(f"{name}__icontains", word) for name in names], connector=Q.OR))
    rows = rows.annotate(base_plan=FilteredRelation("plans", condition=Q(plans__profile="base")))
    found = rows.order_by(F("served_id").asc(), "pk").values_list(*_COLUMNS)
    listed = [_row(*columns) for columns in found]
    return _best(listed) if wanted.best else listed


def _row(*columns: Any) -> FitsRow:
    pk, path, served_id, base_id, quant, quant_label, size_bytes, model_key, *rest = columns
    verdict, tokens, placement, excesses, *others = rest
    return FitsRow(
        pk=pk,
        path=path,
        served_id=served_id,
        base_id=base_id,
        quant=quant,
        quant_label=quant_label,
        size_bytes=size_bytes,
        model_key=model_key,
        planned_verdict=verdict or "",
        planned_tokens=tokens or 0,
        placement_text=placement or "",
        excesses=excesses,
        version=(pk, size_bytes, *others),
    )


def _best(rows: Sequence[FitsRow]) -> list[FitsRow]:
    """Of each model the largest file that fits, else the smallest: what the list of models shows."""
    models: dict[str, list[FitsRow]] = {}
    for row in rows:
        models.setdefault(row.model_key or row.path, []).append(row)
    return [_shown(members) for members in models.values()]


def _shown(members: Sequence[FitsRow]) -> FitsRow:
    fitting = [row for row in members if row.planned_verdict == "fits"]
    if fitting:
        return max(fitting, key=lambda row: row.size_bytes)
    return min(members, key=lambda row: row.size_bytes)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
