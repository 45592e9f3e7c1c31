"""What a host speaks against writing a text now: asked when a text is reviewed, and again before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import chain

from django.utils import timezone

from gpus_app.models import Dialect, Host
from models_app import convert
from models_app.core.export.drift import Case
from models_app.core.export.findings import BLOCK, WARN, CheckFinding, finding
from models_app.core.export.host_rules import (
    MOST_NAMED,
    TargetFacts,
    adapters_of,
    file_findings,
    files_of,
    note_findings,
    program_findings,
    stale_findings,
    target_findings,
    version_findings,
)
from models_app.core.export.memory_rules import figures_from_json, plan_findings, resident_findings
from models_app.core.export.revisions.outline import Outline
from models_app.core.launch.executables import programs_of
from models_app.drift_rows import WORDS
from models_app.models import Component, Finding, Revision, Root, Row, SpawnGuard
from models_app.selectors.comparing import Comparison, outline_of_revision, unread_roots, watch_of
from models_app.selectors.confirming import confirming_of

UNKNOWN_FLAG = "flag-unknown"
Sees = Callable[[str, str], bool]


def host_findings(
    host: Host,
    revision: Revision,
    comparison: Comparison | None = None,
    *,
    untouched: Sequence[str] = (),
    sees: Sees = lambda name, path: True,
) -> list[CheckFinding]:
    """Findings of V-04, V-07 to V-14, V-17, V-19 and, with a comparison, V-21, the worst first.

    `untouched` are changed models for whose change no reason is known; V-08, V-10 and V-11 are told of models that
    somebody `sees`, by id and file.
    """
    outline = comparison.outline if comparison else outline_of_revision(revision)
    folders = _folders(host)
    found = chain(
        target_findings(target_facts(host, [path for path, *_ in folders])),
        _strange_programs(host, revision, outline),
        file_findings(files_of(outline, windows=host.os_family == "windows"), gone_files(host)),
        stale_findings(_age_minutes(folders)),
        _to_confirm(revision, outline, comparison, sees),
        _refused_flags(host, outline),
        _of_memory(revision, outline, sees),
        note_findings(revision.text),
        _of_version(comparison, untouched),
    )
    order = ("block", "slug", "confirm", "warn", "note")
    return sorted(found, key=lambda item: (order.index(item.severity), item.rule))


def blocking_findings(host: Host, revision: Revision) -> list[CheckFinding]:
    """Those that forbid the write."""
    return [item for item in host_findings(host, revision) if item.severity == BLOCK]


def target_facts(host: Host, roots: Sequence[str]) -> TargetFacts:
    """The target of a host and what lies around it. The same machine is where the same worker answers."""
    watch = watch_of(host)
    neighbours = Host.objects.filter(worker_id=host.worker_id).exclude(pk=host.pk).exclude(publish_path="")
    others = list(neighbours) if host.worker_id else []
    hands_out = [other.name for other in others if other.publish_dialect != Dialect.LLAMA_SERVER]
    return TargetFacts(
        path=host.publish_path,
        roots=roots,
        same_path=[other.name for other in others if other.publish_path == host.publish_path],
        same_ports=hands_out if host.publish_dialect != Dialect.LLAMA_SERVER else (),
        is_foreign=bool(watch.sha256) and not watch.has_header and not host.written_sha256,
        drift=WORDS[Case(watch.case)] if watch.blocks else "",
    )


def gone_files(host: Host) -> set[str]:
    """Paths that were there and that the last complete scan did not find."""
    rows = Row.objects.filter(host=host, state=Row.State.MISSING).values_list("path", flat=True)
    parts = Component.objects.filter(host=host, away_since__isnull=False).values_list("path", flat=True)
    return {*rows, *parts}


def files_to_check(host: Host, revision: Revision) -> list[str]:
    """Files that must be there when the host writes. What lies in a folder that is away was confirmed with V-18."""
    away = [f"{root.rstrip('/')}/" for root in unread_roots(host)]
    files = files_of(outline_of_revision(revision), windows=host.os_family == "windows")
    return sorted(path for path in files if not path.startswith(tuple(away)))


def adapters_to_check(host: Host, revision: Revision) -> list[str]:
    """Adapters and folders of them that the host has to let people see when it writes."""
    return adapters_of(outline_of_revision(revision), windows=host.os_family == "windows")


def _folders(host: Host) -> list[tuple[str, datetime | None, datetime | None]]:
    """(path, last scan, last look) of each folder of a host."""
    return list(Root.objects.filter(host=host).values_list("path", "last_scan_at", "host__folder_watch__looked_at"))


def _age_minutes(folders: Sequence[tuple[str, datetime | None, datetime | None]]) -> int | None:
    times = [moment for _, *moments in folders for moment in moments if moment is not None]
    return int((timezone.now() - max(times)).total_seconds() // 60) if times else None


def _strange_programs(host: Host, revision: Revision, outline: Outline) -> Iterator[CheckFinding]:
    """V-04: an older text may name programs that the host has no more. Entries by hand have no class."""
    planned = {str(item["id"]) for item in revision.summary.get("entries", []) if item.get("class")}
    guard = SpawnGuard.objects.filter(host=host).first() or SpawnGuard()
    programs = programs_of(convert.core_settings(host))
    return program_findings(outline, planned, programs, guard.program, windows=host.os_family == "windows")


def _to_confirm(revision: Revision, outline: Outline, comparison: Comparison | None, sees: Sees) -> list[CheckFinding]:
    """V-08. A comparison is with the live text."""
    confirming = confirming_of(revision, outline, comparison.outline_before if comparison else None)
    return confirming.findings(lambda name: sees(name, outline.models[name].path))


def _of_memory(revision: Revision, outline: Outline, sees: Sees) -> Iterator[CheckFinding]:
    """V-10, V-11, as of the planning of this text."""
    entries = revision.summary.get("entries", [])
    yield from plan_findings(outline, entries, sees)
    yield from resident_findings(outline, entries, figures_from_json(revision.summary.get("budget", {})), sees)


def _refused_flags(host: Host, outline: Outline) -> list[CheckFinding]:
    """V-09: models of this text whose executable does not know one of their flags, as planning found."""
    served = {model.path: name for name, model in outline.models.items()}
    rows = Finding.objects.filter(host=host, kind=UNKNOWN_FLAG).order_by("path")[: MOST_NAMED + 1]
    return [finding("V-09", WARN, ("models", served[row.path]), 0, row.text) for row in rows if row.path in served]


def _of_version(comparison: Comparison | None, untouched: Sequence[str]) -> Sequence[CheckFinding]:
    if comparison is None:
        return ()
    change = next((cause for cause in comparison.causes.host if cause.kind == "version"), None)
    return list(version_findings(change.before, change.after, untouched)) if change else ()
