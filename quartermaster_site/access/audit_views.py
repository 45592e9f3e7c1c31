"""The audit log: who did what, filtered, by keys rather than by numbers of pages; and as a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.dateparse import parse_date, parse_datetime
from django.views.decorators.http import require_safe

from models_app.core.settings_files.table import safe_cell
from quartermaster_site.access.audit import actor_of, record
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.access.permissions import Level, needs
from quartermaster_site.access.selectors import AuditFilter, audit_actions, audit_entries
from quartermaster_site.errors import Refused
from quartermaster_site.http import page

PER_PAGE = 50
MAX_TEXT = 200
COLUMNS = ("at", "actor", "address", "action", "object", "host", "result", "reason", "changes", "request")
_TIMES = ("since", "until")


@require_safe
@needs(Level.MANAGE)
def audit_log(request: HttpRequest) -> HttpResponse:
    """Newest first; `before` is the number of the last entry of the page before."""
    typed, wanted, problem = _typed(request), AuditFilter(), ""
    try:
        wanted = _filter(typed)
    except ValueError as error:
        problem = str(error)
    found = audit_entries(wanted)
    before = request.GET.get("before", "")
    if before.isdecimal() and len(before) <= 18:
        found = found.filter(pk__lt=int(before))
    entries = list(found[: PER_PAGE + 1]) if not problem else []
    older = entries[PER_PAGE - 1].pk if len(entries) > PER_PAGE else 0
    kept = {key: value for key, value in typed.items() if value}
    context = {
        "entries": entries[:PER_PAGE],
        "filters": typed,
        "filtered": bool(kept),
        "problem": problem,
        "actions": audit_actions(),
        "older_url": f"?{urlencode({**kept, 'before': older})}" if older else "",
        "newest_url": f"?{urlencode(kept)}" if before else "",
        "export_url": f"{reverse('access:audit-export')}?{urlencode(kept)}",
    }
    return page(request, "access/audit_log.html", context, fragments=["entries"], status=422 if problem else 200)


@require_safe
@needs(Level.MANAGE)
def audit_export(request: HttpRequest) -> StreamingHttpResponse:
    """The filtered entries, oldest first, as CSV or JSON lines. Taking them away is an entry itself."""
    typed = _typed(request)
    try:
        wanted = _filter(typed)
    except ValueError as error:
        raise Refused(str(error)) from error
    kind = "jsonl" if request.GET.get("as") == "jsonl" else "csv"
    record(actor_of(request), "audit.export", reason=f"{kind} {urlencode({k: v for k, v in typed.items() if v})}")
    rows = audit_entries(wanted).order_by("pk").iterator(chunk_size=500)
    lines = _json_lines(rows) if kind == "jsonl" else _csv_lines(rows)
    mime = "application/x-ndjson" if kind == "jsonl" else "text/csv"
    response = StreamingHttpResponse(lines, content_type=f"{mime}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="audit.{kind}"'
    return response


def _typed(request: HttpRequest) -> dict[str, str]:
    # No text in PostgreSQL may hold a NUL, not even one that is only compared.
    return {
        item.name: request.GET.get(item.name, "").replace("\x00", "")[:MAX_TEXT].strip() for item in fields(AuditFilter)
    }


def _filter(typed: dict[str, str]) -> AuditFilter:
    """Raises ValueError with a sentence about a time that is none."""
    texts = {name: value for name, value in typed.items() if name not in _TIMES}
    return AuditFilter(**texts, since=_time(typed["since"]), until=_time(typed["until"], end=True))


def _time(typed: str, *, end: bool = False) -> datetime | None:
    """A day or a time of day, in UTC; as the end of a span a day counts whole."""
    if not typed:
        return None
    try:
        if (day := parse_date(typed)) is not None:
            begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
            return begin + timedelta(days=1, microseconds=-1) if end else begin
        moment = parse_datetime(typed)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise ValueError(f"{typed!r} is no time: write 2026-01-31, or 2026-01-31 18:00 (UTC).")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _cells(entry: AuditEntry) -> dict[str, Any]:
    return {
        "at": entry.at.isoformat(timespec="milliseconds"),
        "actor": entry.actor,
        "address": entry.address,
        "action": entry.action,
        "object": entry.object_label,
        "host": entry.host_slug,
        "result": entry.result,
        "reason": entry.reason,
        "changes": entry.changes,
        "request": entry.request_id,
    }


class _Echo:
    """A file that gives back what is written, so that a table can be streamed."""

    def write(self, text: str) -> str:
        return text


def _csv_lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    """A cell that a spreadsheet would run as a formula is marked as text."""
    table = csv.writer(_Echo())
    yield table.writerow(COLUMNS)
    for entry in entries:
        cells = _cells(entry)
        texts = [json.dumps(value, sort_keys=True) if isinstance(value, dict) else value for value in cells.values()]
        yield table.writerow([safe_cell(text) for text in texts])


def _json_lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        yield json.dumps(_cells(entry), sort_keys=True) + "\n"
