"""Storing the results of a scan. Nothing that is known is deleted because something could not be read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from models_app import records
from models_app.core import catalog
from models_app.core.errors import TRANSIENT, QuartermasterError
from models_app.core.readers.record import header_from_json
from models_app.models import Component, Finding, HeaderFacts, Root, Row
from models_app.services import derived_findings
from models_app.services.component_results import settle_components, store_components
from models_app.services.listings import doubt_listing, is_as_stored, stamp_as_seen, take_listing
from models_app.services.row_results import link_headers, store_rows
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.untrusted import ReportRefused

MAX_HEADERS = 200
MAX_ROWS = 1000
MAX_FINDINGS = 1000
MAX_ROOTS = 200
MAX_UNREAD = 1000
_STATE_BATCH = 500
EMPTY_ROOT = "the folder is empty, and there were models in it: is a drive not mounted?"
_ROOT_STATES = {"ok": Root.State.OK, "missing": Root.State.MISSING, "unreadable": Root.State.UNREADABLE}
_HEADER_FIELDS = ["size_bytes", "mtime_ns", "facts", "parser_version", "error_code", "error", "error_offset", "read_at"]
_ERROR_FIELDS = ["error_code", "error", "error_offset", "read_at"]


def store_scan_batch(*, job: Job, data: dict[str, Any]) -> None:
    """One batch: any of headers, rows, components, findings. All of it is untrusted."""
    if job.host is not None:
        doubt_listing(job.host)
    if "headers" in data:
        _store_headers(job, untrusted.items(data["headers"], "headers", MAX_HEADERS))
    if "rows" in data:
        found = [records.row_from_json(item) for item in untrusted.items(data["rows"], "rows", MAX_ROWS)]
        store_rows(job, found)
    if "components" in data:
        items = untrusted.items(data["components"], "components", MAX_ROWS)
        store_components(job, [records.component_from_json(item) for item in items])
    if "findings" in data:
        items = untrusted.items(data["findings"], "findings", MAX_FINDINGS)
        _store_findings(job, [records.finding_from_json(item) for item in items])


def _store_headers(job: Job, items: list[Any]) -> None:
    """A file that could not be opened keeps the facts that are known of it, with the size and time of these."""
    rows = {row.path: row for row in (_header_row(job, item) for item in items)}
    closed = [row for row in rows.values() if row.facts is None and row.error_code in TRANSIENT]
    read = [row for row in rows.values() if row.facts is not None or row.error_code not in TRANSIENT]
    for found, columns in ((read, _HEADER_FIELDS), (closed, _ERROR_FIELDS)):
        HeaderFacts.objects.bulk_create(
            found, update_conflicts=True, unique_fields=["host", "path"], update_fields=columns
        )


def _header_row(job: Job, value: Any) -> HeaderFacts:
    item = untrusted.mapping(value, "a header")
    row = HeaderFacts(
        host=job.host,
        path=untrusted.path(item.get("path"), "path"),
        size_bytes=untrusted.integer(item.get("size_bytes"), "size_bytes"),
        mtime_ns=untrusted.integer(item.get("mtime_ns"), "mtime_ns", -untrusted.MAX_INT),
        parser_version=untrusted.integer(item.get("parser_version", 0), "parser_version", 0, 1 << 30),
    )
    if item.get("facts") is None:
        error = untrusted.mapping(item.get("error"), "error")
        row.error_code = untrusted.text(error.get("code"), "code", 40)
        row.error = untrusted.text(error.get("text"), "text", 500)
        row.error_offset = untrusted.optional_integer(error.get("offset"), "offset")
        return row
    row.facts = records.bounded(item["facts"])
    try:
        header_from_json(row.facts)
    except QuartermasterError as error:
        raise ReportRefused(f"header facts of {row.path}: {error}") from error
    return row


def _store_findings(job: Job, found: list[catalog.Finding]) -> None:
    paths = {item.path for item in found}
    known = {(row.kind, row.path): row for row in Finding.objects.filter(host=job.host, path__in=paths)}
    rows = {row.path: row for row in Row.objects.filter(host=job.host, path__in=paths).defer("found")}
    fresh: dict[tuple[str, str], Finding] = {}
    for item in found:
        key = (item.kind, item.path)
        finding = known.get(key) or fresh.get(key)
        if finding is None:
            finding = fresh[key] = Finding(host=job.host, kind=item.kind, path=item.path, first_scan=job)
        finding.level, finding.text, finding.code, finding.offset = item.level, item.text, item.code, item.offset
        finding.last_scan, finding.row = job, rows.get(item.path)
    Finding.objects.bulk_create(fresh.values())
    changed = [known[key] for key in {(item.kind, item.path) for item in found} if key in known]
    Finding.objects.bulk_update(changed, ["level", "text", "code", "offset", "last_scan", "row"], batch_size=200)


def finish_scan(*, job: Job, data: dict[str, Any], partial: bool) -> dict[str, Any]:
    """Judge what the scan did not see. A partial scan removes nothing; what lies below an unread folder is offline.

    The numbers of the answer are about what this scan found to be different; `models` and `files` are all there are.
    """
    sent_roots = untrusted.items(data.get("roots", []), "roots", MAX_ROOTS)
    reports = [_doubted(job, _root_report(item)) for item in sent_roots]
    sent = untrusted.items(data.get("unread", []), "unread", MAX_UNREAD)
    unread = {untrusted.path(item, "unread").rstrip("/\\") for item in sent}
    unread |= {report.path.rstrip("/\\") for report in reports if report.state == Root.State.MISSING}
    unchanged = not partial and is_as_stored(job, data)
    missing = offline = 0
    if unchanged:
        stamp_as_seen(job, lambda path: _is_below(path, unread))
    else:
        link_headers(job)
    for report in reports:
        root = Root.objects.filter(host=job.host, path=report.path).first()
        if root is None:
            continue
        if not partial and not unchanged:
            gone, away = _judge(job, root, report, unread, complete=len(sent) < MAX_UNREAD)
            missing, offline = missing + gone, offline + away
        _note_root(root, report, partial=partial)
    if not partial and not unchanged:
        _forget_findings(job, unread)
        settle_components(job, lambda path: len(sent) >= MAX_UNREAD or path in unread or _is_below(path, unread))
    if not partial:
        take_listing(job, data)
    seen = Row.objects.filter(host=job.host, last_scan=job)
    return {
        "models": seen.exclude(state=Row.State.OFFLINE).count(),
        "files": untrusted.integer(data.get("files", 0), "files", 0, 1 << 40),
        "new": seen.filter(first_seen_at__gte=job.created_at).count(),
        "changed": job.result.get("changed", 0),
        "back": job.result.get("back", 0),
        "missing": missing,
        "offline": offline,
        "components": Component.objects.filter(host=job.host, away_since=None).count(),
        "unchanged": unchanged,
    }


@dataclass(frozen=True, slots=True)
class RootReport:
    """How far a host could read one of its roots."""

    path: str
    state: str
    reason: str
    files: int


def _doubted(job: Job, report: RootReport) -> RootReport:
    """A folder that is suddenly empty is most likely the mount point of a drive that is not there."""
    if report.state != Root.State.OK or report.files:
        return report
    if not Row.objects.filter(host=job.host, root__path=report.path).exclude(state=Row.State.MISSING).exists():
        return report
    return replace(report, state=Root.State.MISSING, reason=EMPTY_ROOT)


def _root_report(value: Any) -> RootReport:
    item = untrusted.mapping(value, "a root")
    state = _ROOT_STATES.get(untrusted.text(item.get("state"), "state", 12), Root.State.PARTIAL)
    return RootReport(
        untrusted.path(item.get("path"), "path"),
        state,
        untrusted.text(item.get("reason", ""), "reason", 500),
        untrusted.integer(item.get("files", 0), "files", 0, 1 << 30),
    )


def _judge(job: Job, root: Root, report: RootReport, unread: Collection[str], *, complete: bool) -> tuple[int, int]:
    """Mark the rows of a root that were not met; the numbers that are gone, and that are out of reach, since now."""
    gone, away = _split(job, Row.objects.filter(root=root), report.state, unread, complete=complete)
    return (
        _set_state(gone, Row.State.MISSING, "the file is gone"),
        _set_state(away, Row.State.OFFLINE, report.reason or "its folder could not be read"),
    )


def _split(
    job: Job, rows: QuerySet[Row], state: str, unread: Collection[str], *, complete: bool
) -> tuple[list[int], list[int]]:
    """Rows that are gone, and rows about which nothing is known, by number.

    A scan may have met a row in a folder that went away before the scan ended.
    """
    gone, away = [], []
    is_lost = state in (Root.State.MISSING, Root.State.UNREADABLE)
    for pk, path, was, scan in rows.values_list("pk", "path", "state", "last_scan_id"):
        unknown = is_lost or _is_below(path, unread)
        if scan == job.pk:
            if unknown:
                away.append(pk)
        elif not unknown and complete and path not in unread:
            gone.append(pk)
        elif was != Row.State.MISSING:
            # A file that was gone before its folder went away is still gone, as far as anybody knows.
            away.append(pk)
    return gone, away


def _is_below(path: str, folders: Collection[str]) -> bool:
    """Whether a path lies in one of these folders. Not asked of the database: there may be a thousand of them."""
    while (cut := max(path.rfind("/"), path.rfind("\\"))) >= 0:
        path = path[:cut]
        if path in folders:
            return True
    return False


def _set_state(pks: Sequence[int], state: str, reason: str) -> int:
    """How many were in another state before."""
    changed, now = 0, timezone.now()
    for start in range(0, len(pks), _STATE_BATCH):
        rows = Row.objects.filter(pk__in=pks[start : start + _STATE_BATCH]).exclude(state=state)
        changed += rows.update(state=state, state_reason=reason[:500], state_since=now)
    return changed


def _note_root(root: Root, report: RootReport, *, partial: bool) -> None:
    state, now = Root.State.PARTIAL if partial else report.state, timezone.now()
    if root.state != state:
        root.state_since = now
    root.state, root.state_reason, root.last_scan_at = state, report.reason, now
    if state in (Root.State.OK, Root.State.PARTIAL):
        root.file_count = report.files
    root.save()


def _forget_findings(job: Job, unread: Collection[str]) -> None:
    """A complete scan that no longer finds something settles it, except where it could not look."""
    found = Finding.objects.filter(host=job.host).exclude(kind__in=derived_findings.NOT_FROM_SCANS)
    old = found.exclude(last_scan=job).values_list("pk", "path")
    settled = [pk for pk, path in old if not _is_below(path, unread)]
    for start in range(0, len(settled), _STATE_BATCH):
        Finding.objects.filter(pk__in=settled[start : start + _STATE_BATCH]).delete()
