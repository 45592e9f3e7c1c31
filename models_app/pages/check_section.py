"""The part of a plan panel about llama.cpp's own figures: what was measured, how far it is from the plan, what can be
done.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpus_app.models import Host
from models_app.core.units import MIB
from models_app.models import Verification
from models_app.selectors.checks import PlanChecks
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.pages import LOOKS
from quartermaster_site.version import product_version

AGREES_PERCENT = 5.0
"""Above, nobody would call it agreement."""
_PARTS = (("weights", "Weights"), ("kv", "Context"), ("compute", "Compute buffers"))
_MINUS = "−"


@dataclass(frozen=True, slots=True)
class CheckCell:
    """Measured minus planned, and what was measured, in MiB."""

    difference: str
    measured: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    colour: str
    label: str
    cells: tuple[CheckCell, ...]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One verification in words. `stale` says why it is not about this launch, "" when it is."""

    tone: str
    word: str
    build: str
    by: str
    at: datetime
    stale: str
    places: tuple[str, ...]
    rows: tuple[CheckRow, ...]
    total: CheckRow
    notes: tuple[str, ...]
    kept_free: str


@dataclass(frozen=True, slots=True)
class JobLine:
    pk: int
    tone: str
    word: str
    shape: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class CheckSection:
    """Everything that `components/_check.html` prints. `missing` is why nothing can be asked, "" when it can."""

    url: str
    plan_url: str
    look_url: str
    settings_url: str
    polls: bool
    missing: str
    looking: bool
    result: CheckResult | None
    replanned: bool
    """The plan is another one since the check, because of what that has shown."""
    job: JobLine | None
    may_operate: bool
    may_look: bool
    """May who looks at it have the host look for the program?"""
    host: Host


def check_section(
    checks: PlanChecks,
    *,
    url: str,
    plan_url: str,
    look_url: str,
    settings_url: str,
    may_operate: bool,
    may_look: bool,
    host: Host,
) -> CheckSection:
    """The section of one plan."""
    seen, job = checks.shown, checks.job
    running = job is not None and not job.is_finished
    return CheckSection(
        url=url,
        plan_url=plan_url,
        look_url=look_url,
        settings_url=settings_url,
        polls=running or checks.is_looking,
        missing=_missing(checks),
        looking=checks.is_looking,
        result=_result(checks, seen) if seen else None,
        replanned=seen is not None and "?" not in plan_url and _has_replanned(checks, seen),
        job=_job_line(job, seen) if job else None,
        may_operate=may_operate,
        may_look=may_look,
        host=host,
    )


def _missing(checks: PlanChecks) -> str:
    program = checks.program
    if program is None or (program.looked_at is None and not program.path):
        return f"Nobody has looked yet whether llama-fit-params lies beside {checks.server} on this host."
    if program.path:
        return ""
    return f"llama.cpp cannot be asked: {program.problem or 'there is no llama-fit-params'}."


def _result(checks: PlanChecks, seen: Verification) -> CheckResult:
    agrees = seen.agreement_percent <= AGREES_PERCENT
    rows = tuple(_row(seen, index, colour, label) for index, (colour, label) in enumerate(_PARTS))
    total = CheckRow("", "Total", tuple(_cell(sum(measured), sum(ours)) for _, measured, ours in seen.figures))
    return CheckResult(
        tone="ok" if agrees else "warn",
        word=f"llama.cpp {'agrees to' if agrees else 'differs by'} {percent_text(seen.agreement_percent)}",
        build=f"build {seen.build}" if seen.build else "unknown build",
        by=str(seen.checked_by or "the system"),
        at=seen.checked_at,
        stale=_stale(checks, seen),
        places=tuple("RAM" if name == "host" else name for name, _, _ in seen.figures),
        rows=rows,
        total=total,
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in seen.notes),
        kept_free=_kept_free(checks, seen),
    )


def percent_text(percent: float) -> str:
    """What all differences together are of all that was measured."""
    if percent == 0:
        return "the MiB"
    return f"{percent:.1f} %" if percent >= 0.05 else "less than 0.1 %"


def _stale(checks: PlanChecks, seen: Verification) -> str:
    if checks.current is not None:
        return ""
    if seen.launch == checks.launch and checks.program is not None:
        return f"Made with another build; the server is {checks.program.build or 'of an unknown build'} now."
    if seen.version != product_version():
        return "Made with the figures of another version of this product."
    return "Made for another launch than the one planned here."


def _has_replanned(checks: PlanChecks, seen: Verification) -> bool:
    """Whether the newest check has changed the very plan that it was about."""
    is_newest = checks.job is not None and seen.job_id == checks.job.pk
    return is_newest and checks.current is None and checks.keeps_extra_free and bool(_kept_free(checks, seen))


def _kept_free(checks: PlanChecks, seen: Verification) -> str:
    """What the excess of this verification does to plans."""
    counts = seen.version == product_version() and checks.program is not None and seen.build == checks.program.build
    parts = [f"{seen.device_excess_bytes // MIB:,} MiB on a device"] if seen.device_excess_bytes else []
    parts += [f"{seen.ram_excess_bytes // MIB:,} MiB in RAM"] if seen.ram_excess_bytes else []
    if not parts or not counts:
        return ""
    more = f"llama.cpp holds up to {' and '.join(parts)} more than projected."
    if not checks.keeps_extra_free:
        return f"{more} Plans do not keep that free: it is switched off for this host."
    return f"{more} Plans of this model keep that free on this build."


def _row(seen: Verification, index: int, colour: str, label: str) -> CheckRow:
    return CheckRow(colour, label, tuple(_cell(measured[index], ours[index]) for _, measured, ours in seen.figures))


def _cell(measured_bytes: int, ours_bytes: int) -> CheckCell:
    difference = (measured_bytes - ours_bytes) // MIB
    sign = "+" if difference > 0 else _MINUS if difference < 0 else ""
    return CheckCell(f"{sign}{abs(difference):,}", f"{measured_bytes // MIB:,}")


def _job_line(job: Job, seen: Verification | None) -> JobLine | None:
    """A job that runs, or one that went wrong after the last result."""
    tone, word, shape = LOOKS[job.state]
    if not job.is_finished:
        return JobLine(job.pk, tone, word, shape, job.state_reason or job.phase or "Waiting to start")
    later = seen is None or (job.finished_at is not None and job.finished_at > seen.checked_at)
    if job.state in (State.FAILED, State.LOST) and later:
        return JobLine(job.pk, tone, word, shape, _sentence(job.error), job.advice)
    return None


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
