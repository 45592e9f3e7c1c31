"""From rows, settings and overrides of a host to its text: a candidate revision, validated, with its plans stored."""

from __future__ import annotations

import hashlib
import json
import ntpath
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from gpus_app.models import Host, OsFamily
from gpus_app.selectors import hosts
from models_app import convert
from models_app.core import catalog
from models_app.core.discovery.inventory import Inventory
from models_app.core.discovery.names import sort_key
from models_app.core.export.findings import CheckFinding, blocks
from models_app.core.export.llama_swap import Options
from models_app.core.export.presets import SLUG as PRESETS
from models_app.core.export.presets.convert import SERVED_CLASSES
from models_app.core.export.stamp import HEADER_LINES, content_digest, stamped
from models_app.core.generate import Generated, generate
from models_app.core.launch.tokens import rules_for
from models_app.models import Finding, Revision, Row, SpawnGuard, StoredPlan
from models_app.services.backend_probes import probe_when_due
from models_app.services.check_facts import excesses_by_path
from models_app.services.checks import look_when_due
from models_app.services.command_findings import command_findings
from models_app.services.derived_findings import LEFT_OUT, NOT_FROM_SCANS, note_findings
from models_app.services.fragments import fragment_inputs, fragments_of
from models_app.services.headers_ahead import HeadersAhead
from models_app.services.key_export import export_keys, keys_required, numbers_held, sha256_to_write
from models_app.services.plan_notes import PlanNotes, stored_columns
from models_app.services.planning import HostFacts, HostPlanner, host_facts
from models_app.services.retention import prune_revisions
from models_app.services.revision_details import details_of, inputs_of, newest_change, summary_of
from quartermaster_site.jobs.control import ControlReporter
from quartermaster_site.jobs.models import Job
from quartermaster_site.version import product_version

OnRow = Callable[[int, int, str], None]
ROWS_AT_ONCE = 500


def build_candidate(*, job: Job, report: ControlReporter) -> dict[str, Any]:
    """Plan all models of the job's host and keep the text as its newest candidate, unless nothing has changed.

    A job that a later one has overtaken stores nothing: the later one saw everything that this one saw.
    """
    host = hosts().get(jobs=job)
    rows, found = _rows_of(host)
    if not rows and not host.revisions.exists():
        note_findings(host)
        return {"models": 0}
    last_change, facts = newest_change(host), replace(host_facts(host), excesses=excesses_by_path(host, rows))
    notes, generated = _planned(host, found, facts, report)
    report.progress("Storing", 0, len(rows), unit="models")
    inputs = inputs_of(host, facts, rows, last_change)
    details = details_of(generated, inputs)
    # The text holds the entries: ten thousand of them, and what they were planned from, make room for storing it.
    generated = replace(generated, document=replace(generated.document, models=generated.document.skipped))
    del found
    plans, renamed = _stored_plans(rows, notes, generated)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        if Job.objects.filter(kind=job.kind, host=host, pk__gt=job.pk).exists():
            return {"overtaken": True}
        StoredPlan.objects.filter(row__in=rows).delete()
        StoredPlan.objects.bulk_create(plans, batch_size=200)
        Row.objects.bulk_update(renamed, ["served_id"], batch_size=200)
        summary, digests = summary_of(generated.report, notes, facts), _inputs(host, facts, rows)
        revision, created = _store_revision(host, job, generated, summary, digests)
        if created:
            details.revision, details.companions = revision, _beside(generated)
            details.save()
    if created:
        prune_revisions(host)
    note_findings(host, (*command_findings(notes.refused), *_left_out(host, notes, generated)))
    look_when_due(host)
    probe_when_due(host)
    return {
        "models": len(rows),
        "entries": len(generated.report.entries),
        "skipped": len(generated.report.skipped),
        "revision": revision.number,
        "created": created,
        "warnings": sum(finding.severity != "note" for finding in generated.findings),
    }


def _planned(
    host: Host, rows: Sequence[catalog.Row], facts: HostFacts, report: ControlReporter
) -> tuple[PlanNotes, Generated]:
    """What is kept of the plans, and the file."""
    notes = PlanNotes()
    planner = HostPlanner(facts, HeadersAhead(host, rows), notes.take)
    return notes, planned_file(
        host, rows, facts, planner, lambda done, total, name: report.progress("Planning", done, total, current=name)
    )


def _rows_of(host: Host) -> tuple[list[Row], list[catalog.Row]]:
    """The models of a host with what is stored of them, and as planning takes them, in the order of the file.

    What discovery found is not kept beside that: its JSON is much larger than what is made of it.
    """
    columns = ("path", "served_id", "size_bytes", "mtime_ns", "model_class", "excesses", "found")
    rows, found = [], []
    # Not in the order of lists: a database would sort all of that in memory.
    stored = Row.objects.filter(host=host).exclude(state=Row.State.MISSING).order_by("pk")
    for row in stored.only(*columns).iterator(ROWS_AT_ONCE):
        found.append(convert.core_row(row))
        del row.found
        rows.append(row)
    return rows, sorted(found, key=sort_key)


def planned_file(
    host: Host,
    rows: Iterable[catalog.Row],
    facts: HostFacts,
    planner: HostPlanner,
    on_row: OnRow = lambda done, total, name: None,
    *,
    dialect: str = "",
) -> Generated:
    """The file of a host as it would be now; in its own dialect, or another."""
    dialect = dialect or host.publish_dialect
    found = sorted(rows, key=sort_key)
    findings = tuple(
        convert.core_finding(row) for row in Finding.objects.filter(host=host).exclude(kind__in=NOT_FROM_SCANS)
    )
    return generate(
        Inventory(tuple(found), findings, ()),
        planner,
        header_of=planner.headers,
        settings=facts.settings,
        timestamp=timezone.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        overrides=facts.overrides,
        budget_of=facts.budget_for,
        same_path=facts.same_path,
        dialect=dialect,
        options=_options(host),
        keys=export_keys(host, dialect),
        fragments=fragments_of(host, dialect),
        word_rules=rules_for(host.os_family),
        on_row=on_row,
    )


def _options(host: Host) -> Options:
    """Files beside the config lie in its folder. Without a required key the router may be open to everyone."""
    split = ntpath.split if host.os_family == OsFamily.WINDOWS else posixpath.split
    folder, name = split(host.publish_path)
    guard = SpawnGuard.objects.filter(host=host).first() or SpawnGuard()
    return Options(
        config_folder=folder,
        file_name=name,
        allow_open=not keys_required(host),
        guard_program=guard.program,
        header_cache=guard.header_cache,
    )


def _stored_plans(rows: Sequence[Row], notes: PlanNotes, generated: Generated) -> tuple[list[StoredPlan], list[Row]]:
    """The plans of these rows as lists show them, and the rows that are served under another id than before.

    Made before the transaction that stores them: while that runs nobody else can write to SQLite.
    """
    now = timezone.now()
    reasons = {item["file"]: item["reason"] for item in generated.report.skipped}
    plans: list[StoredPlan] = []
    renamed = []
    for row in rows:
        served = notes.served.get(row.path, row.served_id)[:300]
        if served != row.served_id:
            row.served_id = served
            renamed.append(row)
        for columns in notes.columns.get(row.path) or (_unplanned(row, reasons.get(row.path, "")),):
            plans.append(StoredPlan(row=row, planned_at=now, **columns))
    return plans, renamed


def _left_out(host: Host, notes: PlanNotes, generated: Generated) -> Iterator[catalog.Finding]:
    """Models with a plan that the file of this router has no entry of; those without one say so by themselves."""
    no_others = host.publish_dialect == PRESETS
    for item in generated.document.skipped:
        if notes.is_served(item.path):
            level = "info" if no_others and item.model_class not in SERVED_CLASSES else "warning"
            yield catalog.Finding(LEFT_OUT, item.path, item.reason, level)


def _unplanned(row: Row, reason: str) -> dict[str, Any]:
    plan = catalog.Plan(
        profile_id=row.served_id,
        model_class=row.model_class,
        verdict="unplanned",
        placement=None,
        projection=None,
        skip_reason=reason or "set to be skipped",
    )
    return stored_columns(plan, None)


def _store_revision(
    host: Host, job: Job, generated: Generated, summary: dict[str, Any], inputs: dict[str, str]
) -> tuple[Revision, bool]:
    """The candidate with this body: the newest one again where it is the same, else the next number."""
    body = content_digest(generated.text, _beside(generated))
    newest = Revision.objects.filter(host=host).order_by("-number").first()
    if newest is not None and (newest.body_sha256, newest.dialect) == (body, host.publish_dialect):
        return newest, False
    number = (Revision.objects.filter(host=host).aggregate(last=Max("number"))["last"] or 0) + 1
    text = stamped(generated.text, host=host.slug, revision=number)
    revision = Revision.objects.create(
        host=host,
        number=number,
        state=Revision.State.BLOCKED if blocks(generated.findings) else Revision.State.VALIDATED,
        dialect=host.publish_dialect,
        text=text,
        body_sha256=body,
        sha256=sha256_to_write(text),
        findings=[_finding(finding) for finding in generated.findings],
        summary=summary,
        inputs={**inputs, "keys": numbers_held(text, _beside(generated))},
        parent=Revision.objects.filter(host=host, state=Revision.State.WRITTEN).first(),
        author=job.started_by,
        job=job,
    )
    return revision, True


def _beside(generated: Generated) -> list[dict[str, str]]:
    return [{"name": item.name, "text": item.text} for item in generated.document.companions]


def _finding(finding: CheckFinding) -> dict[str, Any]:
    """With the line counted in the stamped text, which has one line more below its header."""
    line = finding.line + 1 if finding.line > HEADER_LINES else finding.line
    return {**asdict(finding), "line": line}


def _inputs(host: Host, facts: HostFacts, rows: Sequence[Row]) -> dict[str, str]:
    """Digests of what went in, so that two revisions can say what made them differ."""
    files = [
        [row.path, row.size_bytes, row.mtime_ns, row.model_class] for row in sorted(rows, key=lambda row: row.path)
    ]
    return {
        "files": _digest(files),
        "settings": _digest(repr(facts.settings)),
        "budget": _digest(repr(facts.budget)),
        "checks": _digest(repr(sorted(facts.excesses.items()))),
        "overrides": _digest([repr(override) for override in facts.overrides]),
        "fragments": _digest(fragment_inputs(host)),
        "version": product_version(),
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
