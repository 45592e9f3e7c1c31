"""Control-queue tasks about models: planning, and what hosts say about their folders."""

from __future__ import annotations

import logging
import threading
from typing import Any

from models_app.services import routers, target_looks, watching
from models_app.services.building import build_candidate
from models_app.services.import_applying import apply_batch
from models_app.services.importing import read_batch
from models_app.services.key_publishing import publish_due_keys
from models_app.services.publishing import write_due
from quartermaster_site.celery import app
from quartermaster_site.errors import NotFound
from quartermaster_site.jobs import control, services, untrusted

log = logging.getLogger(__name__)
_PLANNING = threading.RLock()
"""Planning is all processor time: two at once take as long as one after the other, and would hold up what hosts say."""


@app.task(name="models_app.tasks.plan_host", **control.TASK_AGAIN)  # type: ignore[untyped-decorator]
def plan_host(job: int) -> None:
    """Plan a host's models and keep the text; one host at a time, and whoever ends has the next one begin."""
    if not _PLANNING.acquire(blocking=False):
        return
    try:
        control.run(job, lambda row, report: build_candidate(job=row, report=report))
    finally:
        _PLANNING.release()
    services.send_next("plan_host")
    write_due()


@app.task(name="models_app.tasks.read_import", **control.TASK_AGAIN)  # type: ignore[untyped-decorator]
def read_import(job: int) -> None:
    """Read a file that somebody brought in, and compare it with the host."""
    control.run(job, lambda row, report: read_batch(job=row, report=report))


@app.task(name="models_app.tasks.apply_import", **control.TASK_AGAIN)  # type: ignore[untyped-decorator]
def apply_import(job: int) -> None:
    """Take over what somebody ticked of an import."""
    control.run(job, lambda row, report: apply_batch(job=row, report=report))


@app.task(name="models_app.tasks.write_due_texts")  # type: ignore[untyped-decorator]
def write_due_texts() -> None:
    """Every ten seconds: texts of hosts that are written by themselves."""
    write_due()


@app.task(name="models_app.tasks.publish_due_keys")  # type: ignore[untyped-decorator]
def publish_keys() -> None:
    """Every half minute, and when keys change: files that hold other keys than they should."""
    publish_due_keys()


@app.task(name="models_app.tasks.folders_looked_at")  # type: ignore[untyped-decorator]
def folders_looked_at(slug: Any, token: Any, answer: Any) -> None:
    """A host has looked at its folders; what it says is untrusted."""
    try:
        watching.take_look(
            untrusted.text(slug, "slug", 40), untrusted.text(token, "token", 64), untrusted.mapping(answer, "a look")
        )
    except untrusted.ReportRefused as refused:
        log.warning("look refused: %s", refused)


@app.task(name="models_app.tasks.folders_stir")  # type: ignore[untyped-decorator]
def folders_stir(slug: Any) -> None:
    """Something changes in the folders of a host."""
    try:
        watching.look_now(untrusted.text(slug, "slug", 40))
    except (untrusted.ReportRefused, NotFound) as refused:
        log.warning("word from folders refused: %s", refused)


@app.task(name="models_app.tasks.router_looked_at")  # type: ignore[untyped-decorator]
def router_looked_at(slug: Any, token: Any, answer: Any) -> None:
    """A host has asked its router; what it says is untrusted."""
    try:
        routers.take_look(
            untrusted.text(slug, "slug", 40), untrusted.text(token, "token", 64), untrusted.mapping(answer, "a look")
        )
    except untrusted.ReportRefused as refused:
        log.warning("look at a router refused: %s", refused)


@app.task(name="models_app.tasks.target_looked_at")  # type: ignore[untyped-decorator]
def target_looked_at(slug: Any, token: Any, answer: Any) -> None:
    """A host has looked at its router's file; what it says is untrusted."""
    try:
        target_looks.take_look(
            untrusted.text(slug, "slug", 40), untrusted.text(token, "token", 64), untrusted.mapping(answer, "a look")
        )
    except untrusted.ReportRefused as refused:
        log.warning("look at a router's file refused: %s", refused)


@app.task(name="models_app.tasks.target_stirs")  # type: ignore[untyped-decorator]
def target_stirs(slug: Any) -> None:
    """Something changes at the router's file of a host."""
    try:
        target_looks.look_now(untrusted.text(slug, "slug", 40))
    except (untrusted.ReportRefused, NotFound) as refused:
        log.warning("word from a router's file refused: %s", refused)
