"""Whether a host's router file is as we left it: judged by what the host reports, kept, and told (web.md 11.7).

The rows that this writes are locked by whoever calls; what people decide about a drift is in `drift_choices`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.signals import worker_replaced
from models_app.core.export.drift import Case, Found, case_of
from models_app.core.export.key_blocks import without_keys
from models_app.drift_rows import KEEP_VERSIONS, WORDS
from models_app.models import DiskVersion, Finding, TargetWatch
from models_app.selectors.comparing import watch_of
from models_app.services.derived_findings import DRIFT
from models_app.services.key_export import known_secrets
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.redaction import mask, redact_lines
from quartermaster_site.errors import Refused
from quartermaster_site.jobs import untrusted

GRACE = timedelta(seconds=5)
"""A file that is renamed over may be away for a moment: that is no removal."""
MAX_TEXT = 16 << 20


@dataclass(frozen=True, slots=True)
class Report:
    """What a host found at a path. `text` is "" where the control side has it already."""

    path: str
    found: Found
    size_bytes: int
    modified_at: datetime | None
    text: str


def report_of(answer: dict[str, Any]) -> Report:
    """The answer of a host, untrusted. Raises ReportRefused."""
    seconds = untrusted.number(answer.get("modified_seconds", 0.0), "modified_seconds", 0, 4e9)
    return Report(
        path=untrusted.path(answer.get("path", ""), "path"),
        found=Found(
            sha256=untrusted.text(answer.get("sha256", ""), "sha256", 64),
            has_header=untrusted.boolean(answer.get("has_header", False), "has_header"),
            problem=untrusted.text(answer.get("problem", ""), "problem", 500),
        ),
        size_bytes=untrusted.integer(answer.get("size_bytes", 0), "size_bytes"),
        modified_at=datetime.fromtimestamp(seconds, UTC) if seconds else None,
        text=untrusted.text(answer.get("text", ""), "text", MAX_TEXT),
    )


def storable_text(host: Host, text: str) -> str:
    """A router's file without secrets: what is ours as its placeholder, what looks like one masked."""
    return redact_lines(without_keys(text, known_secrets(host), mask))


def judge(host: Host, report: Report, *, is_older_text: bool) -> TargetWatch:
    """Keep what was found at the host's path, and what it means. Runs in a transaction that holds the host's row."""
    now = timezone.now()
    watch = row_for(host)
    before, watch.looked_at = watch.finding, now
    found = report.found
    case = case_of(found, written_sha256=host.written_sha256, is_older_text=is_older_text)
    if not _is_missing_for_long(watch, found, now) and case == Case.REMOVED:
        watch.save()
        return watch
    watch.sha256, watch.size_bytes, watch.modified_at = found.sha256, report.size_bytes, report.modified_at
    watch.has_header, watch.problem, watch.case = found.has_header, found.problem, case.value
    if watch.finding != before:
        watch.since, watch.later, watch.taken = (now if case else None), "", ""
        _note_event(host, watch, before)
    watch.save()
    if case in (Case.EDITED, Case.REPLACED):
        _keep_version(host, report)
    sync_finding(host, watch)
    return watch


def _is_missing_for_long(watch: TargetWatch, found: Found, now: datetime) -> bool:
    if found.sha256 or found.problem:
        watch.missing_since = None
        return False
    watch.missing_since = watch.missing_since or now
    return now - watch.missing_since >= GRACE


def _note_event(host: Host, watch: TargetWatch, before: str) -> None:
    worker = Actor(name=f"worker of {host.slug}")
    changes = {"case": [before.partition(":")[0], watch.case]}
    action = "drift.found" if watch.case else "drift.gone"
    record(worker, action, subject=host, host_slug=host.slug, changes=changes, reason=watch.problem)


def _keep_version(host: Host, report: Report) -> None:
    """Once per distinct hash; the oldest of many go."""
    if not report.text:
        return
    DiskVersion.objects.get_or_create(
        host=host,
        sha256=report.found.sha256,
        defaults={"text": storable_text(host, report.text), "size_bytes": report.size_bytes},
    )
    old = DiskVersion.objects.filter(host=host).order_by("-found_at", "-pk").values_list("pk", flat=True)
    DiskVersion.objects.filter(pk__in=list(old[KEEP_VERSIONS:])).delete()


def known_hashes(host: Host, watch: TargetWatch) -> list[str]:
    """Hashes whose text the host need not send again."""
    known = {host.written_sha256} | set(DiskVersion.objects.filter(host=host).values_list("sha256", flat=True))
    if watch.case == Case.RESTORED:
        known.add(watch.sha256)
    return sorted(known - {""})


def note_ours(host: Host, sha256: str) -> None:
    """These bytes of ours lie there now. An answer that is still under way is about what was there before."""
    watch = row_for(host)
    before, watch.case = watch.finding, Case.NONE.value
    watch.looked_at, watch.sha256, watch.has_header = timezone.now(), sha256, True
    watch.problem, watch.missing_since, watch.since, watch.later, watch.taken = "", None, None, "", ""
    watch.asked_at, watch.token = None, ""
    if before:
        _note_event(host, watch, before)
    watch.save()
    sync_finding(host, watch)


@receiver(worker_replaced)
def forget_question(host: Host, **_: Any) -> None:
    """An answer that is under way is not waited for, nor believed."""
    TargetWatch.objects.filter(host=host).update(asked_at=None, token="")


def sync_finding(host: Host, watch: TargetWatch) -> None:
    """Lists of findings name a drift while somebody should look at it."""
    if not watch.calls:
        Finding.objects.filter(host=host, kind=DRIFT).delete()
        return
    text = f"the router's file {WORDS[Case(watch.case)]}; nothing is written until somebody decides"
    with transaction.atomic():
        Finding.objects.filter(host=host, kind=DRIFT).exclude(path=watch.path).delete()
        Finding.objects.update_or_create(
            host=host,
            kind=DRIFT,
            path=watch.path,
            defaults={"level": "error", "text": text, "since": watch.since or timezone.now()},
        )


def row_for(host: Host) -> TargetWatch:
    """The row of a host to write to. What is kept of another path than the one that is set now is forgotten."""
    row = TargetWatch.objects.filter(host=host).first()
    if row is not None and row.path == host.publish_path:
        return row
    return TargetWatch(pk=row.pk if row else None, host=host, path=host.publish_path)


def require_undrifted(host: Host) -> None:
    """V-14: nothing is written over what somebody else put there. Raises Refused."""
    watch = watch_of(host)
    if watch.is_by_hand:
        raise Refused(f"The file of {host} is managed by hand: resume writing on the Drift page first.")
    if watch.blocks:
        raise Refused(f"The file of {host} {WORDS[Case(watch.case)]}: decide on the Drift page first.")
