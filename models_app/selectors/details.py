"""One model, and the findings of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from models_app import convert
from models_app.core import catalog
from models_app.core.errors import HeaderError, QuartermasterError
from models_app.core.readers.record import header_meta
from models_app.models import Change, Finding, Override, Row, StoredPlan
from models_app.pins import ORDER, PATTERN
from models_app.selectors.rules import CoveringRule, covering_rule
from models_app.selectors.sight import HostSight, seen_findings, seen_rows, sees_profile
from quartermaster_site.access.permissions import Level, level_of, require
from quartermaster_site.errors import NotFound

ACKNOWLEDGED = Q(seen_text=F("text")) & ~Q(seen_text="")
SEVERITY = Case(
    When(level="error", then=Value(0)), When(level="warning", then=Value(1)), default=2, output_field=IntegerField()
)
"""For sorting findings, the worst first."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a model: its role (model, shard, drafter, projector, codec), and the folder it is borrowed from."""

    role: str
    path: str
    size_bytes: int
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ModelDetail:
    """Everything a model's page shows, beside the plan that is made afresh."""

    row: Row
    found: catalog.Row
    header: catalog.Header | None
    header_error: str
    parts: Sequence[Part]
    plans: Sequence[StoredPlan]
    override: Override | None
    """The model's own; a rule that covers it is none."""
    rule: CoveringRule | None
    """The rule that applies to it where it has no override of its own."""
    variant_count: int
    change_count: int
    findings: Sequence[Finding]
    quants: Sequence[Row]
    """The same model's rows that are not hidden, this one included."""
    sight: HostSight
    """What of its host is hidden from who looks."""

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """Facts that the header has, name and value as text, by name; what it does not say is left out."""
        return [(name, self.sight.text(value)) for name, value in _facts(self.header)]


def get_row(pk: int, user: Any, level: Level = Level.VIEW, *, for_plan: bool = True) -> Row:
    """One row by its number, for a person who needs `level` on it. The facts of its header stay in the database until
    they are asked for; `for_plan` brings what a plan needs of the host.

    NotFound, also where it is hidden from them; NotAllowed.
    """
    host = ("host__devices", "host__settings", "host__backends") if for_plan else ()
    rows = Row.objects.select_related("host", "root", "header").prefetch_related(*host)
    row = rows.defer("header__facts").filter(pk=pk).first()
    if row is None or level_of(user, row) < Level.VIEW:
        raise NotFound("There is no such model.")
    require(user, level, row)
    return row


def model_detail(row: Row, user: Any) -> ModelDetail:
    """The model behind a row, as a person sees it."""
    sight = HostSight(user, row.host_id)
    found = convert.core_row(row)
    header, problem = _header(row)
    tried = Override.objects.filter(Q(match=row.path, quant="") | PATTERN, host=row.host).select_related("changed_by")
    changes = Change.objects.filter(host=OuterRef("host"), match=OuterRef("match"), quant="").order_by()
    counted = changes.values("match").annotate(count=Count("pk")).values("count")
    counts = {"variant_count": Count("variants"), "change_count": Coalesce(Subquery(counted), Value(0))}
    candidates = list(tried.annotate(**counts).order_by(*ORDER))
    override = next((item for item in candidates if item.match == row.path), None)
    siblings = seen_rows(user).filter(host=row.host, model_key=row.model_key).defer("found").order_by("size_bytes")
    return ModelDetail(
        row=row,
        found=found,
        header=header,
        header_error=problem,
        parts=[part for part in _parts(found) if sight.sees(part.path)],
        plans=[plan for plan in row.plans.all() if sees_profile(user, row, plan.profile_id)],
        override=override,
        rule=covering_rule(row, (item for item in candidates if item is not override)),
        variant_count=override.variant_count if override else 0,  # type: ignore[attr-defined]
        change_count=override.change_count if override else 0,  # type: ignore[attr-defined]
        findings=list(sight.findings(row.findings.all())),
        sight=sight,
        quants=list(siblings) if row.model_key else [row],
    )


def _header(row: Row) -> tuple[catalog.Header | None, str]:
    if row.header is None:
        return None, "" if row.found.get("is_sam") or row.found.get("is_trellis") else "not read yet"
    known = convert.header_lookup(row.host, [row.path])(row.path)
    if known is not None:
        return known, ""
    try:
        return convert.core_header(row.header), ""
    except HeaderError as error:
        return None, error.message
    except QuartermasterError as error:
        return None, str(error)


def _facts(header: catalog.Header | None) -> list[tuple[str, str]]:
    if header is None:
        return []
    meta = header_meta(header)
    extra = meta.pop("extra", None)
    named = {**meta, **(extra if isinstance(extra, dict) else {})}
    return [(name, _text(value)) for name, value in sorted(named.items()) if isinstance(value, bool) or value]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    return str(value)


def _parts(found: catalog.Row) -> list[Part]:
    folder = found.full_path.rpartition("/")[0]
    parts = [Part("shard", shard.path, shard.size_bytes) for shard in found.shards]
    if not parts:
        parts.append(Part("model", found.full_path, found.size_bytes))
    for role, path, size in (
        ("drafter", found.draft_path, found.draft_size_bytes),
        ("projector", found.mmproj_path, found.mmproj_size_bytes),
        ("codec", found.codec_path, found.codec_size_bytes),
    ):
        if path:
            origin = path.rpartition("/")[0]
            parts.append(Part(role, path, size, "" if origin == folder else origin))
    return parts


def issues(user: Any, *, host: str = "", level: str = "", acknowledged: bool = False) -> QuerySet[Finding]:
    """The findings that a person sees, the worst first: those that are open, or those that somebody acknowledged as
    they are.
    """
    found = seen_findings(user).select_related("host", "row").defer("row__found", "row__excesses")
    found = found.annotate(object_name=F("row__file_name"))
    found = found.filter(ACKNOWLEDGED) if acknowledged else found.exclude(ACKNOWLEDGED)
    if host:
        found = found.filter(host__slug=host)
    if level:
        found = found.filter(level=level)
    return found.annotate(severity=SEVERITY).order_by("severity", "path", "kind")
