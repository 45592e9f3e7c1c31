"""The control side of a host's reports: believe none, store each once, finish when all have come."""

from __future__ import annotations

import hmac
import logging
from dataclasses import dataclass
from typing import Any

from django.db import DataError, IntegrityError, OperationalError, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from quartermaster_site.jobs import kinds, outcomes, untrusted
from quartermaster_site.jobs.models import Job, JobReport, State
from quartermaster_site.jobs.untrusted import ReportRefused

log = logging.getLogger(__name__)
CLOSING = ("done", "cancelled", "failed")
MAX_BATCHES = 100_000


class Receiver:
    """What a kind of job does with its reports. Both run inside the transaction that stores the report."""

    def batch(self, job: Job, data: dict[str, Any]) -> None:
        raise ReportRefused(f"{job.kind} sends no batches")

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        """Store the closing result; returns what the job row shows. `partial`: cancelled half-way."""
        return {}

    def failed(self, job: Job) -> None:
        """The work failed, or got lost."""

    def message(self, job: Job) -> dict[str, Any]:
        """What the host is given: the inputs, or more where that is too large or too secret for the job's row.

        Raises QuartermasterError where there is nothing to send any more: the job has failed then.
        """
        inputs: dict[str, Any] = job.inputs
        return inputs

    def inputs_again(self, job: Job) -> dict[str, Any]:
        """What a repetition of the job is given: the same, unless something in it goes stale."""
        inputs: dict[str, Any] = job.inputs
        return inputs


@dataclass(frozen=True, slots=True)
class Report:
    job: int
    token: str
    kind: str
    data: dict[str, Any]


def parse(event: Any) -> Report:
    """The envelope of a report; raises ReportRefused."""
    outer = untrusted.mapping(event, "the report")
    return Report(
        job=untrusted.integer(outer.get("job"), "job", 1),
        token=untrusted.text(outer.get("token"), "token", 128),
        kind=untrusted.text(outer.get("kind"), "kind", 16),
        data=untrusted.mapping(outer.get("data"), "data"),
    )


def receive(event: Any) -> None:
    """Take one report. One that is not believed changes nothing; a wrong one of a right job fails that job."""
    try:
        report = parse(event)
        if not _belongs(report):
            raise ReportRefused("unknown job, wrong token, or the job is over")
    except ReportRefused as refused:
        log.warning("report refused: %s", refused)
        return
    try:
        with transaction.atomic():
            jobs = Job.objects.select_for_update(of=("self",)).select_related("host")
            # What is deferred is not saved either: the inputs of a scan can be a megabyte, a report comes every moment.
            job = jobs.defer("inputs").filter(pk=report.job).first()
            if job is not None and not job.is_finished:
                _apply(job, report)
    except (ReportRefused, DataError) as refused:
        log.warning("report of job %s refused: %s", report.job, refused)
        fail_unfinished(report.job, "ReportRefused", f"The worker's report was refused: {refused}.")
    except OperationalError:
        raise
    except Exception as error:
        log.exception("storing a report of job %s failed", report.job)
        fail_unfinished(report.job, type(error).__name__, "The result could not be stored; the log has the details.")


def _belongs(report: Report) -> bool:
    job = Job.objects.only("token", "state").filter(pk=report.job).first()
    if job is None or job.is_finished:
        return False
    return hmac.compare_digest(job.token.encode(), report.token.encode())


def fail_unfinished(job_id: int, kind: str, message: str) -> None:
    """Close a job as failed, unless it is over, or gone with its host."""
    with transaction.atomic():
        job = Job.objects.select_for_update().filter(pk=job_id).first()
        if job is not None and not job.is_finished:
            outcomes.fail(job, error_kind=kind, error=message)
            receiver_of(job).failed(job)


def receiver_of(job: Job) -> Receiver:
    path = kinds.BY_SLUG[job.kind].receiver
    receiver: Receiver = import_string(path)() if path else Receiver()
    return receiver


def _apply(job: Job, report: Report) -> None:
    job.heartbeat_at = timezone.now()
    if job.state in (State.QUEUED, State.WAITING):
        job.state, job.state_reason, job.started_at = State.RUNNING, "", job.heartbeat_at
    if report.kind == "progress":
        outcomes.note_progress(job, report.data)
    elif report.kind == "batch":
        _store_batch(job, report.data)
    elif report.kind in CLOSING:
        job.final_report = {"kind": report.kind, "data": report.data}
    elif report.kind not in ("started", "beat"):
        raise ReportRefused(f"unknown kind of report {report.kind!r}")
    job.save()
    if job.final_report:
        _finish_when_complete(job)


def _store_batch(job: Job, data: dict[str, Any]) -> None:
    sequence = untrusted.integer(data.get("sequence"), "sequence", 1, MAX_BATCHES)
    try:
        with transaction.atomic():
            JobReport.objects.create(job=job, sequence=sequence)
    except IntegrityError:
        return
    receiver_of(job).batch(job, data)


def _finish_when_complete(job: Job) -> None:
    kind, data = job.final_report["kind"], job.final_report["data"]
    expected = untrusted.integer(data.get("batches", 0), "batches", 0, MAX_BATCHES)
    if job.reports.count() < expected:
        return
    job.warnings = untrusted.integer(data.get("warnings", 0), "warnings", 0, 1 << 30)
    outcomes.append_log(job, data.get("log", []))
    if kind == "failed":
        outcomes.fail(
            job,
            error_kind=untrusted.text(data.get("error_kind", ""), "error_kind", 64),
            error=untrusted.text(data.get("error", ""), "error", 4000),
            advice=untrusted.text(data.get("advice", ""), "advice", 500),
        )
        receiver_of(job).failed(job)
        return
    partial = kind == "cancelled"
    result = receiver_of(job).finish(job, data, partial=partial)
    outcomes.finish(job, result, cancelled=partial)
