"""Findings that follow from plans, pins and other files: made anew whenever a host is planned.

Scans neither make nor settle these. One that stays keeps the time since when it is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import Q

from gpus_app.models import Host
from models_app.core.catalog import Finding as CoreFinding
from models_app.core.components.resolve import Components
from models_app.models import Finding, Row, StoredPlan
from models_app.pages.component_words import WIRED, is_ambiguous, need_text
from models_app.selectors.components import HostComponents, ModelRef, host_components
from models_app.services.command_findings import UNKNOWN_FLAG

LEFT_OUT = "left-out"
KINDS = ("component-missing", "component-ambiguous", "pin-gone", "duplicate-id", "not-served", LEFT_OUT, UNKNOWN_FLAG)
DRIFT = "drift"
NOT_FROM_SCANS = (*KINDS, DRIFT)
"""Kinds that a scan neither makes nor settles."""
NAMED_FILES = 3


def note_findings(host: Host, of_commands: Iterable[CoreFinding] = ()) -> None:
    """Bring the derived findings of a host up to date; `of_commands` are those of the plans
    and the file just made."""
    found = host_components(host)
    wanted = {(item.kind, item.path): item for item in (*_of_components(found), *_of_rows(host), *of_commands)}
    rows = {model.path: model.pk for model in found.models}
    with transaction.atomic():
        known = {(row.kind, row.path): row for row in Finding.objects.filter(host=host, kind__in=KINDS)}
        fresh = []
        for key, item in wanted.items():
            row = known.pop(key, None)
            if row is None:
                fresh.append(Finding(host=host, kind=item.kind, path=item.path, **_columns(item, rows)))
            elif (row.text, row.level, row.row_id) != (item.text, item.level, rows.get(item.path)):
                Finding.objects.filter(pk=row.pk).update(**_columns(item, rows))
        Finding.objects.bulk_create(fresh, batch_size=200)
        Finding.objects.filter(pk__in=[row.pk for row in known.values()]).delete()


def _columns(item: CoreFinding, rows: dict[str, int]) -> dict[str, object]:
    return {"level": item.level, "text": item.text[:1000], "row_id": rows.get(item.path)}


def _of_components(found: HostComponents) -> Iterable[CoreFinding]:
    for model in found.models:
        yield from _of_model(found, model, found.chosen.get(model.pk, Components()))
    for key, path in found.lost_pins.items():
        text = f"the host's pin {key} names this file, which is gone: the pin is ignored"
        yield CoreFinding("pin-gone", path, text)


def _of_model(found: HostComponents, model: ModelRef, chosen: Components) -> Iterable[CoreFinding]:
    if chosen.missing:
        needs = [need_text(role, found.headers[model.path], model.base_id) for role in chosen.missing]
        yield CoreFinding("component-missing", model.path, f"no {'; no '.join(needs)}")
    doubts = [
        _doubt(role, pick.path, [entry.path for entry in pick.ranking.equals])
        for role, pick in chosen.picks.items()
        if is_ambiguous(pick)
    ]
    if doubts:
        yield CoreFinding("component-ambiguous", model.path, "; ".join(doubts), "info")


def _doubt(role: str, path: str, equals: Sequence[str]) -> str:
    names = [other.rpartition("/")[2] for other in equals]
    others = ", ".join(names[:NAMED_FILES]) + (", …" if len(names) > NAMED_FILES else "")
    return f"{WIRED.get(role, role)}: {path.rpartition('/')[2]} is used, by path alone; as good: {others}"


def _of_rows(host: Host) -> Iterable[CoreFinding]:
    """Files that share an id, and files that are not served without a finding that says why."""
    rows = Row.objects.filter(host=host).exclude(state=Row.State.MISSING).order_by("served_id", "path")
    owners: dict[str, str] = {}
    clashes = []
    for path, served, own in rows.values_list("path", "served_id", "found__id"):
        owners.setdefault(served, path)
        if own is not None and served != own:
            clashes.append((path, served, str(own)))
    for path, served, own in clashes:
        other = owners.get(own, "another file")
        yield CoreFinding("duplicate-id", path, f"served as {served}, because {own} is {other}", "info")
    explains = Q(level="error") | Q(kind="package-incomplete")
    explained = Finding.objects.filter(explains, host=host).values("path")
    idle = StoredPlan.objects.filter(row__in=rows, profile="base", verdict="unplanned")
    idle = idle.exclude(row__path__in=explained).exclude(row__model_class="").order_by("row__path")
    for path, reason in idle.values_list("row__path", "skip_reason"):
        yield CoreFinding("not-served", path, reason or "not served", "warning")
