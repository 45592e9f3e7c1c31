"""The steps of the first-run wizard, and its checks in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse

from gpus_app.models import Host
from models_app.models import Finding, Row
from quartermaster_site.figures import counted
from quartermaster_site.jobs.connection import broker_problem

MOST_SKEW_SECONDS = 5.0
STEPS = (
    ("checks", "Checks", "Is everything in place?", "What Quartermaster needs on this machine."),
    ("administrator", "Administrator", "Who looks after this installation?", "The first account has every right."),
    ("host", "Host", "Which machine holds the models?", "This one, or another one with GPUs that is added here."),
    ("folders", "Folders", "Where are the model files?", "Folders that are scanned; sub-folders are included."),
    ("backends", "Backends", "What runs the models?", "Executables on that machine; they are asked what they are."),
    ("memory", "Memory", "How much memory may planning use?", "Everything left empty is measured or has a default."),
    ("scan", "First scan", "What is in there?", "Headers are read; plans are made from them."),
    ("router", "Router", "Which router starts them?", "Its config file is what Quartermaster writes."),
    ("done", "Done", "Ready", "The models are planned, the config file can be downloaded."),
)


@dataclass(frozen=True, slots=True)
class Step:
    slug: str
    title: str
    heading: str
    lead: str
    number: int
    url: str
    back: str


@dataclass(frozen=True, slots=True)
class StepLink:
    title: str
    url: str
    done: bool
    current: bool


@dataclass(frozen=True, slots=True)
class Check:
    title: str
    text: str
    tone: str
    word: str
    shape: str

    @property
    def blocks(self) -> bool:
        return self.tone == "bad"


def step_named(slug: str) -> Step | None:
    for index, (name, title, heading, lead) in enumerate(STEPS):
        if name == slug:
            before = 0 if slug == "host" else max(index - 1, 0)  # the administrator is made once
            back = reverse("models:setup-step", args=[STEPS[before][0]])
            return Step(name, title, heading, lead, index + 1, reverse("models:setup-step", args=[name]), back)
    return None


def next_url(step: Step) -> str:
    return reverse("models:setup-step", args=[STEPS[min(step.number, len(STEPS) - 1)][0]])


def step_links(current: Step, *, has_administrator: bool) -> list[StepLink]:
    """Steps that can be gone to are links: before there is an administrator only the first two."""
    links = []
    for index, (slug, title, _, _) in enumerate(STEPS):
        reachable = index != 1 if has_administrator else index < 2
        url = reverse("models:setup-step", args=[slug]) if reachable else ""
        links.append(StepLink(title, url, index + 1 < current.number, index + 1 == current.number))
    return links


def run_checks(host: Host | None) -> list[Check]:
    """What must be right before going on (bad blocks), and what should be (warn)."""
    found = [_database(), _broker(), _secret(), _static_files(), _worker(host)]
    for message in checks.run_checks(databases=["default"]):
        if message.is_serious() and not message.is_silenced():
            found.append(Check(str(message.id), f"{message.msg} {message.hint or ''}".strip(), "warn", "look", "warn"))
    return found


def _check(title: str, problem: str, fine: str, *, blocks: bool = False) -> Check:
    if problem:
        return Check(title, problem, "bad" if blocks else "warn", "blocked" if blocks else "look", "")
    return Check(title, fine, "ok", "ok", "")


def _database() -> Check:
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return _check("Database", f"It does not answer: {error}", "", blocks=True)
    problem = f"{counted(len(waiting), 'migration')} to run: start with ./quartermaster up." if waiting else ""
    return _check("Database", problem, f"{connection.vendor}, up to date", blocks=True)


def _broker() -> Check:
    return _check("Queue", broker_problem(), "takes messages", blocks=True)


def _secret() -> Check:
    weak = len(settings.SECRET_KEY) < 32
    return _check("Secret key", "It is too short: set QM_SECRET_KEY." if weak else "", "set", blocks=True)


def _static_files() -> Check:
    missing = not settings.DEBUG and not (settings.STATIC_ROOT / "staticfiles.json").exists()
    return _check("Static files", "Not collected: start with ./quartermaster up." if missing else "", "collected")


def _worker(host: Host | None) -> Check:
    if host is None or host.last_seen_at is None:
        return _check("Worker", "No worker has answered yet; scans wait until one does.", "")
    if abs(host.clock_skew_seconds) > MOST_SKEW_SECONDS:
        return _check("Worker", f"Its clock differs by {host.clock_skew_seconds:.0f} s from this machine's.", "")
    return _check("Worker", "" if host.is_reachable else f"{host.name} is offline.", f"{host.name} answers")


def found_text(host: Host) -> str:
    """`34 models in 35 quants, 5 findings`: models, not files, counted as the list of models counts them."""
    rows = Row.objects.filter(host=host)
    models = rows.values("model_key").distinct().count()
    findings = Finding.objects.filter(host=host).exclude(level="info").count()
    text = f"{counted(models, 'model')} in {counted(rows.count(), 'quant')}"
    return f"{text}, {counted(findings, 'finding')}" if findings else text


def findings_exist(host: Host) -> bool:
    return Finding.objects.filter(host=host).exclude(level="info").exists()


def frame(step: Step, *, has_administrator: bool) -> dict[str, Any]:
    """What every step prints around its own content."""
    return {"step": step, "steps": step_links(step, has_administrator=has_administrator)}
