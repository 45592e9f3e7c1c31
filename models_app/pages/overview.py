"""The overview as text: one card a host, what needs somebody, what people changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from gpus_app.memory_settings import NUMBERS
from gpus_app.models import Host
from gpus_app.selectors import target_vram_gib
from models_app.models import Finding
from models_app.pages.budget_bar import BudgetBar, budget_bar
from models_app.pages.host_page import device_bar, held_back, is_stale
from models_app.pages.issue_list import finding_row
from models_app.pages.shell import WorkerState, drift_state, worker_state
from models_app.selectors import HostCard
from models_app.selectors.sight import sees_all
from quartermaster_site.access.grants import grants_of
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.drawings import MemoryBar
from quartermaster_site.figures import age, ago, count, counted
from quartermaster_site.jobs.models import Job, State
from quartermaster_site.jobs.pages import LOOKS

ACTIONS = {
    "settings.memory": "memory",
    "settings.gpu": "devices",
    "root.add": "folder added",
    "root.remove": "folder removed",
    "host.rename": "renamed",
    "host.target": "target",
    "user.create": "account made",
    "config.write": "wrote the config file",
    "drift.keep-ours": "kept our config file",
    "drift.take-theirs": "brought the changed config file in",
    "drift.by-hand": "took the config file in hand",
    "access-key.create": "API key made",
    "access-key.revoke": "API key revoked",
}
"""Audit actions that the overview lists -> what it calls them."""

FIELD_NAMES = {rule.key: rule.label for rule in NUMBERS} | {
    "autoVram": "Follow free VRAM",
    "multiGpu": "Use several cards",
    "minGpuVramGB": "Smallest card",
    "sharedMemory": "Shared memory",
    "poolIntegratedGpu": "Pool integrated GPUs",
    "deviceReserveGB": "Left to others",
    "devicePreference": "Order of devices",
    "path": "Path",
    "models": "Models",
    "publish_path": "Path",
    "publish_dialect": "Router",
    "replace": "Replace a file edited by hand",
}

_PLAN_WORDS = {
    "over": ("warn", "warning", "warn", "too large for the memory that is set, wherever the layers go."),
    "unknown": ("warn", "warning", "warn", "of unknown need: their memory cannot be judged."),
    "spills": ("", "note", "part", "partly in RAM: slower, but within the memory set."),
}


_AWAY = {
    "offline": "was last heard {note}. Its models, plans and config file stay as they were; its jobs wait.",
    "mismatch": "runs another version than the server; its jobs wait.",
}


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    text: str
    url: str = ""
    tone: str = ""
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One host on the overview."""

    slug: str
    name: str
    subtitle: str
    worker: WorkerState
    bar: MemoryBar | None
    stale: bool
    budget: BudgetBar
    hint: str
    hint_link: str
    facts: tuple[Fact, ...]
    models: int
    folders: int
    may_scan: bool
    held: str


@dataclass(frozen=True, slots=True)
class AttentionLine:
    tone: str
    word: str
    shape: str
    subject: str
    text: str
    url: str
    action: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Change:
    who: str
    subject: str
    action: str
    lines: tuple[FieldChange, ...]
    at: datetime


def summary(cards: Sequence[HostCard]) -> str:
    models = sum(card.models for card in cards)
    served = sum(card.served for card in cards)
    return f"{counted(len(cards), 'host')} · {counted(models, 'quant')} found, {served:,} planned"


def host_card(card: HostCard, *, may_scan: bool) -> Card:
    host = card.host
    used = sum(device.eligible for device in card.devices)
    gpus = counted(used, "GPU") if used else "no GPU used" if card.devices else "no GPU"
    target = target_vram_gib(host)
    budget = f"{target:.2f} GiB budget" if target else "plans run on the CPU"
    measured = host.probed_at is not None
    return Card(
        slug=host.slug,
        name=host.name,
        subtitle=f"{gpus}, {budget}" if measured or card.devices else "not measured yet",
        worker=worker_state(host),
        bar=device_bar(host),
        stale=is_stale(host),
        budget=budget_bar(host, card.largest),
        hint="" if card.devices or not measured else _no_gpu(bool(target)),
        hint_link="Change it" if target else "Set the budget by hand",
        facts=_facts(card),
        models=card.models,
        folders=len(card.roots),
        may_scan=may_scan and bool(card.roots),
        held=held_back(host),
    )


def _no_gpu(by_hand: bool) -> str:
    return f"No GPU was seen: plans {'use the target set by hand' if by_hand else 'run on the CPU'}."


def _facts(card: HostCard) -> tuple[Fact, ...]:
    listing = f"{reverse('models:model-list')}?host={card.host.slug}"
    now = timezone.now()
    scan = card.last_scan
    return (
        Fact("Planned", count(card.served), listing if card.models else ""),
        _counted_fact("With warnings", card.with_warnings, f"{listing}&state=warning", "warn", "warn"),
        _counted_fact("Not served", card.not_served, f"{listing}&state=skipped", "", "hidden"),
        _counted_fact("Offline", card.offline, f"{listing}&state=offline", "bad", "off"),
        Fact("Last scan", _scanned(scan, now), reverse("jobs:job-show", args=[scan.pk]) if scan else ""),
        _config_fact(card, now),
    )


def _scanned(scan: Job | None, now: datetime) -> str:
    """When the newest scan ended; its state where it has not, or did not end well."""
    if scan is None:
        return "never"
    word = LOOKS[scan.state][1]
    if scan.finished_at is None:
        return word
    when = ago(scan.finished_at, now)
    return when if scan.state in (State.SUCCEEDED, State.WARNED) else f"{word} {when}"


def _counted_fact(label: str, number: int, url: str, tone: str, shape: str) -> Fact:
    if not number:
        return Fact(label, "-")
    return Fact(label, count(number), url, tone, shape)


def _config_fact(card: HostCard, now: datetime) -> Fact:
    url = reverse("models:config-show", args=[card.host.slug])
    drift = drift_state(card.host) if hasattr(card.host, "drift_case") else None  # counted with the frame of the page
    if drift and drift.urgent:
        return Fact("Config file", drift.word, drift.url, "bad", "bad")
    if pinned := getattr(card.host, "pinned_number", None):
        return Fact("Config file", f"rev {pinned}, pinned", reverse("models:config-history", args=[card.host.slug]))
    if card.written and not card.is_unwritten:
        return Fact("Config file", f"rev {card.written.number}, {ago(card.written.written_at, now)}", url)
    if card.candidate:
        return Fact("Config file", f"rev {card.candidate.number}, not written", url)
    return Fact("Config file", "-")


def attention_lines(findings: Iterable[Finding]) -> list[AttentionLine]:
    lines = []
    for finding in findings:
        row = finding_row(finding)
        url = row.url or f"{reverse('models:issue-list')}?q={row.object}"
        text = f"{row.title.lower()}: {row.text}"
        lines.append(AttentionLine(row.tone, row.word, row.shape, row.object, text, url, "Look"))
    return lines


def setup_line() -> AttentionLine:
    """The wizard was left before its end; it opens where it can go on."""
    return AttentionLine(
        "act", "needs you", "changed", "Set-up", "is not finished.", reverse("models:setup"), "Continue"
    )


def queue_line(problem: str) -> AttentionLine:
    """No job of any host can start."""
    text = f"{problem.rstrip('.')}. No job starts until this is mended; what is stored stays."
    return AttentionLine("bad", "problem", "bad", "Queue", text, reverse("models:about"), "About")


def control_line(silence: timedelta) -> AttentionLine:
    """Nobody reads what hosts report, and nobody plans."""
    text = (
        f"was last heard {age(silence.total_seconds())} ago. Until it goes on nothing is planned, and no report of a "
        "host is read, so that hosts look offline. Its log is logs/control.log in the data folder."
    )
    return AttentionLine("bad", "problem", "bad", "Control worker", text, reverse("models:about"), "About")


def away_lines(hosts: Iterable[Host]) -> list[AttentionLine]:
    """One line a host whose worker is silent or of another version; a pause is somebody's wish."""
    lines = []
    for host in hosts:
        state = worker_state(host)
        if host.state in _AWAY:
            url = reverse("models:machine-show", args=[host.slug])
            text = _AWAY[host.state].format(note=state.note)
            lines.append(AttentionLine(state.tone, state.word, state.shape, host.name, text, url, "Machine"))
    return lines


def plan_lines(troubled: Sequence[tuple[str, str, str, int]]) -> list[AttentionLine]:
    """One line a host and verdict, which leads to the models concerned."""
    lines = []
    for slug, name, verdict, number in troubled:
        tone, word, shape, text = _PLAN_WORDS[verdict]
        url = f"{reverse('models:model-list')}?{urlencode({'host': slug, 'state': verdict})}"
        lines.append(AttentionLine(tone, word, shape, name, f"{counted(number, 'quant')} {text}", url, "Models"))
    return lines


def changes(user: Any, hosts: Iterable[Host], limit: int) -> list[Change]:
    """What people changed last on these hosts, with the fields; without them where something may be hidden."""
    whole = {host.slug: sees_all(user, host) for host in hosts}
    entries = AuditEntry.objects.filter(action__in=ACTIONS, user__isnull=False)
    if grants_of(user).hide_something:
        entries = entries.filter(host_slug__in=whole)  # keys are of no host, and may name models in their scope
    return [
        Change(
            entry.actor,
            entry.object_label,
            ACTIONS[entry.action],
            _lines(entry.changes) if whole.get(entry.host_slug, True) else (),
            entry.at,
        )
        for entry in entries[:limit]
    ]


def _lines(fields: dict[str, Any]) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(FIELD_NAMES.get(name, name), _value(pair[0]), _value(pair[1]))
        for name, pair in list(fields.items())[:4]
        if isinstance(pair, list) and len(pair) == 2
    )


def _value(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"GPU {key}: {_value(item)}" for key, item in value.items()) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
