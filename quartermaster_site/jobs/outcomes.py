"""How a job row changes: progress, log, and the ways in which work ends."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from quartermaster_site.access.redaction import redact
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job, State

MAX_LOG_BYTES = 64 * 1024
MAX_LOG_LINES = 500
MAX_PHASES = 50
_OLD_SHARE = 0.7


def note_progress(job: Job, data: dict[str, Any]) -> None:
    """Take over a progress report, unless a newer one has been seen. Does not save."""
    tick = untrusted.integer(data.get("tick"), "tick", 1, 1 << 30)
    if tick <= job.tick:
        return
    phase = untrusted.text(data.get("phase", ""), "phase", 64)
    done = untrusted.integer(data.get("done", 0), "done")
    total = untrusted.optional_integer(data.get("total"), "total")
    warnings = untrusted.integer(data.get("warnings", 0), "warnings", 0, 1 << 30)
    unit = untrusted.text(data.get("unit", ""), "unit", 32)
    current = untrusted.text(data.get("current", ""), "current", 500)
    append_log(job, data.get("log", []))
    job.tick = tick
    advance(job, phase=phase, done=done, total=total, unit=unit, current=current, warnings=warnings)


def advance(
    job: Job, *, phase: str, done: int, total: int | None, unit: str = "", current: str = "", warnings: int = 0
) -> None:
    """Set the progress fields and renew the smoothed rate. Does not save."""
    now = timezone.now()
    if phase != job.phase:
        job.phases = [*job.phases, {"name": phase, "started": now.isoformat()}][:MAX_PHASES]
        job.rate, job.samples = 0.0, 0
    elif job.progress_at is not None and (seconds := (now - job.progress_at).total_seconds()) > 0:
        rate = max(done - job.done, 0) / seconds
        job.rate = rate if job.samples < 1 else _OLD_SHARE * job.rate + (1 - _OLD_SHARE) * rate
        job.samples += 1
    job.phase, job.done, job.total, job.unit = phase, done, total, unit
    job.current, job.warnings, job.progress_at, job.heartbeat_at = current, warnings, now, now


def append_log(job: Job, lines: Any) -> None:
    """Add lines, keep the newest 500 and 64 KiB, mask what looks secret. Does not save."""
    fresh = [untrusted.text(line, "a log line", 1000) for line in untrusted.items(lines, "log", 200)]
    if not fresh:
        return
    kept = [*job.log.splitlines(), *(redact(line) for line in fresh)][-MAX_LOG_LINES:]
    text = "\n".join(kept).encode()[-MAX_LOG_BYTES:]
    job.log = text.decode("utf-8", "ignore")


def finish(job: Job, result: dict[str, Any], *, cancelled: bool = False) -> None:
    """The end of work that was done, or that was stopped by request."""
    if cancelled:
        job.state = State.CANCELLED
    else:
        job.state = State.WARNED if job.warnings else State.SUCCEEDED
        if job.total is not None:
            job.done = job.total
    job.result = result
    close(job)


def fail(job: Job, *, error_kind: str, error: str, advice: str = "") -> None:
    job.state = State.FAILED
    job.error_kind, job.error, job.advice = error_kind, redact(error), advice
    close(job)


def close(job: Job) -> None:
    """Stamp the end and save."""
    job.finished_at = timezone.now()
    job.started_at = job.started_at or job.finished_at
    job.state_reason, job.current, job.final_report = "", "", None
    job.save()
