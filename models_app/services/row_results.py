"""Storing the rows of a scan. A row that is as it was costs one stamp; batches may come before their headers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils import timezone

from gpus_app.models import Host
from models_app import convert
from models_app.core import catalog
from models_app.models import HeaderFacts, Root, Row
from quartermaster_site.jobs.models import Job

_KEPT = (
    *("base_id", "quant", "quant_label", "publisher", "repo", "file_name", "size_bytes", "mtime_ns", "category"),
    *("model_class", "class_reason", "architecture", "model_key", "family_key", "found", "state", "state_reason"),
)
_SAVED = (*_KEPT, "root", "header", "state_since")
_BATCH = 100
_READABLE = ExpressionWrapper(Q(facts__isnull=False, error_code=""), output_field=BooleanField())


def store_rows(job: Job, found: Collection[catalog.Row]) -> None:
    """New rows are made, changed ones written, all stamped with the scan that saw them.

    What lies in a folder that was removed from the host while the scan ran is left out.
    """
    if job.host is None:
        return
    roots = {root.path: root for root in Root.objects.filter(host=job.host)}
    removed = {path for path, _ in job.inputs.get("roots", [])} - set(roots)
    found = [row for row in found if row.root not in removed]
    paths = [row.full_path for row in found]
    known = {row.path: row for row in Row.objects.filter(host=job.host, path__in=paths)}
    closed = _known_but_closed(job.host, paths)
    now = timezone.now()
    rows, before = [], {}
    changed = back = 0
    for core in found:
        row = known.get(core.full_path)
        if row is None:
            row = Row(host=job.host, state_since=now, first_seen_at=now, served_id=core.id, last_scan=job)
        else:
            before[row.pk] = _image(row)
            changed += (row.size_bytes, row.mtime_ns) != (core.size_bytes, core.mtime_ns)
            back += row.state in (Row.State.MISSING, Row.State.OFFLINE)
        if row.pk is None or row.path not in closed:
            _take_columns(row, core)
        row.root = roots.get(core.root)
        rows.append(row)
    _take_headers(job.host, rows, job.created_at, now)
    Row.objects.bulk_create([row for row in rows if row.pk is None])
    _save_changed(rows, before)
    Row.objects.filter(pk__in=before).update(last_scan=job)
    _count(job, changed=changed, back=back)


def _known_but_closed(host: Host, paths: Collection[str]) -> set[str]:
    """Files that cannot be opened now and could be before: what is stored of them stays true."""
    stored = HeaderFacts.objects.filter(host=host, path__in=paths, facts__isnull=False)
    return set(stored.exclude(error_code="").values_list("path", flat=True))


def _take_columns(row: Row, core: catalog.Row) -> None:
    for name, value in convert.row_columns(core).items():
        if name != "served_id":
            setattr(row, name, value)


def _count(job: Job, **counts: int) -> None:
    """Added up over the batches of a scan; the receiver of reports saves the job."""
    job.result = {**job.result, **{name: job.result.get(name, 0) + count for name, count in counts.items()}}


def link_headers(job: Job) -> None:
    """At the end of a scan: rows whose header came after them, or was read anew, take it over."""
    if job.host is None:
        return
    late = Q(header=None) | Q(header__read_at__gte=job.created_at)
    rows = list(Row.objects.filter(late, host=job.host, last_scan=job))
    for start in range(0, len(rows), _BATCH):
        part = rows[start : start + _BATCH]
        before = {row.pk: _image(row) for row in part}
        _take_headers(job.host, part, job.created_at, timezone.now())
        _save_changed(part, before)


def _image(row: Row) -> tuple[Any, ...]:
    return (*(getattr(row, name) for name in _KEPT), row.root_id, row.header_id)


def _save_changed(rows: Iterable[Row], before: dict[int, tuple[Any, ...]]) -> None:
    changed = [row for row in rows if row.pk in before and before[row.pk] != _image(row)]
    Row.objects.bulk_update(changed, _SAVED, batch_size=_BATCH)


def _take_headers(host: Host, rows: Collection[Row], since: datetime, now: datetime) -> None:
    """Link headers; those that a row does not know yet, or that were read since, are parsed."""
    stored = HeaderFacts.objects.filter(host=host)
    paths = [row.path for row in rows]
    links = {link.path: link for link in _without_facts(stored.filter(path__in=paths))}
    unknown = [
        row.path
        for row in rows
        if (link := links.get(row.path)) and (row.header_id != link.pk or link.read_at >= since)
    ]
    full = {facts.path: facts for facts in stored.filter(path__in=unknown)}
    for row in rows:
        link = links.get(row.path)
        if link is None or row.path in full:
            _take_facts(row, full.get(row.path))
        row.header = link
        readable = link is None or link.readable  # type: ignore[attr-defined]
        state = Row.State.PRESENT if readable else Row.State.UNREADABLE
        if row.state != state:
            row.state, row.state_since = state, now
        row.state_reason = "" if readable or link is None else link.error


def _without_facts(stored: QuerySet[HeaderFacts]) -> QuerySet[HeaderFacts]:
    return stored.defer("facts").annotate(readable=_READABLE)


def _take_facts(row: Row, facts: HeaderFacts | None) -> None:
    """What lists need of a header."""
    header = convert.core_header(facts) if facts and facts.facts is not None else None
    for name, value in convert.header_columns(header, row.base_id).items():
        setattr(row, name, value)
