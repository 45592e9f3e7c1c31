"""Bringing in a router's file: it is read into a report by a job, and nothing is changed by that (web.md 12)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from gpus_app.models import Host
from models_app.core.errors import ExportError
from models_app.core.export.dialects import BY_SLUG
from models_app.core.export.load import MAX_BYTES
from models_app.core.imports.settings_source import from_archive
from models_app.core.settings_files.archive import is_zip
from models_app.models import ImportBatch
from models_app.services.import_config import read_config
from models_app.services.import_settings import read_settings
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import QuartermasterError, Refused
from quartermaster_site.jobs.control import ControlReporter
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.services import start_job

CONFIG, SETTINGS = "config", "settings"
AUTO = "auto"
Reader = Callable[[ImportBatch, bytes, ControlReporter], dict[str, Any]]
SOURCES: Mapping[str, Reader] = {CONFIG: read_config, SETTINGS: read_settings}
"""Kind of file -> what reads it into a report: {"items", "models", "findings", "meaning"}; only items must be."""


def start_import(
    *, host: Host, name: str, data: bytes, source: str = CONFIG, dialect: str = AUTO, actor: Actor
) -> ImportBatch:
    """Keep a file and have it read. Raises Refused for what can be no text of the kind."""
    require(actor.user, Level.EDIT, host)
    if len(data) > MAX_BYTES:
        raise Refused(f"The file has {len(data):,} bytes; at most {MAX_BYTES:,} are read.")
    if not data.strip():
        raise Refused("The file is empty.")
    if source not in SOURCES or dialect not in (AUTO, *BY_SLUG):
        raise Refused("Choose one of the kinds of files.")
    if source == SETTINGS and is_zip(data):
        data = _unpacked(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"Line {line:,}: this is not UTF-8 text.") from error
    if "\x00" in text:
        raise Refused("This is no text file: it holds NUL characters.")
    with transaction.atomic():
        batch = ImportBatch.objects.create(
            host=host,
            source=source,
            dialect="" if dialect == AUTO else dialect,
            name=name[-300:],
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            text=text,
            by=actor.user,
            actor=actor.name[:150],
        )
        record(actor, "import.read", subject=batch, label=batch.name, host_slug=host.slug)
        subject = ("import", str(batch.pk), batch.name)
        batch.job = start_job(kind="import_parse", host=host, subject=subject, actor=actor).job
        batch.save(update_fields=["job"])
    return batch


def _unpacked(data: bytes) -> bytes:
    """The two files of an archive that was exported."""
    try:
        return from_archive(data).encode()
    except ExportError as error:
        raise Refused(str(error)) from error


def batch_of(job: Job) -> ImportBatch:
    """The batch that a job is about."""
    return ImportBatch.objects.select_related("host").get(pk=int(job.object_id))


def read_batch(*, job: Job, report: ControlReporter) -> dict[str, Any]:
    """The work of the job: parse, compare with the host, keep the report. A file that cannot be read says why."""
    batch = batch_of(job)
    if batch.state != ImportBatch.State.READING:
        return {}
    try:
        content = SOURCES[batch.source](batch, batch.text.encode(), report)
    except Exception as error:
        expected = isinstance(error, QuartermasterError)
        _close(
            batch, ImportBatch.State.FAILED, {}, str(error) if expected else "It could not be read; the log says why."
        )
        raise
    _close(batch, ImportBatch.State.READ, content)
    return {"items": len(content["items"])}


def _close(batch: ImportBatch, state: str, content: dict[str, Any], problem: str = "") -> None:
    batch.state, batch.report, batch.problem, batch.text = state, content, problem[:500], ""
    batch.save(update_fields=["state", "report", "problem", "text"])
