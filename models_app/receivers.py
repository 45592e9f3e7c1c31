"""Storing what host tasks report: headers, rows, findings; a folder's listing; a written file."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from gpus_app.services import request_plan
from models_app.core.export.keys import with_variables
from models_app.models import Row
from models_app.services import check_results, preview_plan, results
from models_app.services.backend_probes import store_probes
from models_app.services.checks import check_inputs
from models_app.services.key_export import secrets_of
from models_app.services.routers import forget_key, note_action
from models_app.services.scanning import scan_inputs
from models_app.services.spawn_guards import note_place
from models_app.services.target_looks import look_after
from models_app.services.trials import trial_result
from models_app.services.writing import note_failed, note_written
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import Refused
from quartermaster_site.jobs import untrusted
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.receiving import Receiver

MAX_ENTRIES = 4000


class ScanReceiver(Receiver):
    """Rows appear as they arrive; what is gone is judged at the end, and only where the scan was complete."""

    def batch(self, job: Job, data: dict[str, Any]) -> None:
        results.store_scan_batch(job=job, data=data)

    def inputs_again(self, job: Job) -> dict[str, Any]:
        """Folders and known headers may have changed since: a folder that was removed must not come back."""
        return scan_inputs(job.host, job.inputs.get("fresh", [])) if job.host else job.inputs

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        host = job.host
        if host is None:
            return {}
        summary = results.finish_scan(job=job, data=data, partial=partial)
        moved = note_place(host=host, value=data.get("guard"))
        if moved or not summary["unchanged"]:
            transaction.on_commit(lambda: request_plan(host=host, actor=Actor(user=job.started_by), parent=job))
        return summary


class BrowseReceiver(Receiver):
    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        entries = untrusted.items(data.get("entries", []), "entries", MAX_ENTRIES)
        return {
            "path": untrusted.path(data.get("path", ""), "path"),
            "parent": untrusted.path(data.get("parent", ""), "parent"),
            "truncated": untrusted.boolean(data.get("truncated", False), "truncated"),
            "entries": [_entry(entry) for entry in entries],
        }


class BackendReceiver(Receiver):
    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        """What programs said of themselves; of a job that was stopped nothing is known."""
        return {} if partial else store_probes(job=job, data=data)


class TrialReceiver(Receiver):
    """A test launch; one that was stopped says nothing."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        return {} if partial else trial_result(data)


class PublishReceiver(Receiver):
    def message(self, job: Job) -> dict[str, Any]:
        """With the secrets of the text's keys, which the job's row does not hold, or the names of their variables."""
        inputs: dict[str, Any] = job.inputs
        texts = [inputs["text"], *(item["text"] for item in inputs.get("companions", ()))]
        secrets = secrets_of(texts)
        named = {**inputs, "text": with_variables(inputs["text"])}
        return {**named, "keys": secrets} if secrets else named

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        forget_key(job)
        if partial:
            note_failed(job=job, reason="cancelled before anything was written")
            return {}
        result: dict[str, Any] = {
            "path": untrusted.path(data.get("path", ""), "path"),
            "sha256": untrusted.text(data.get("sha256", ""), "sha256", 64),
            "backup": untrusted.path(data.get("backup", ""), "backup"),
            "in_place": untrusted.boolean(data.get("in_place", False), "in_place"),
            "reload": untrusted.text(data.get("reload", ""), "reload", 500),
        }
        note_written(job=job, path=result["path"], sha256=result["sha256"])
        return result

    def failed(self, job: Job) -> None:
        forget_key(job)
        note_failed(job=job, reason=job.error or "cancelled before anything was written")
        transaction.on_commit(lambda: look_after(job))


class RouterReceiver(Receiver):
    """What a router did, and how it is since."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        forget_key(job)
        if not partial:
            note_action(job=job, data=data)
        return {}

    def failed(self, job: Job) -> None:
        forget_key(job)


class FindCheckerReceiver(Receiver):
    """Which llama-fit-params belongs to which server."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        return {} if partial else check_results.store_programs(job=job, data=data)


class CheckReceiver(Receiver):
    """A check against llama.cpp; one that was stopped leaves nothing."""

    def finish(self, job: Job, data: dict[str, Any], *, partial: bool) -> dict[str, Any]:
        return {} if partial else check_results.store_check(job=job, data=data)

    def inputs_again(self, job: Job) -> dict[str, Any]:
        """The launch that the model has now, which may be another; the old one where that cannot be checked."""
        row = Row.objects.filter(pk=int(job.object_id or 0)).select_related("host").first()
        try:
            return check_inputs(row, preview_plan(row=row)) if row else job.inputs
        except Refused:
            inputs: dict[str, Any] = job.inputs
            return inputs


def _entry(value: Any) -> dict[str, Any]:
    entry = untrusted.mapping(value, "an entry")
    return {
        "name": untrusted.text(entry.get("name"), "name", 300),
        "kind": untrusted.text(entry.get("kind"), "kind", 16),
        "size_bytes": untrusted.integer(entry.get("size_bytes", 0), "size_bytes"),
        "mtime": untrusted.integer(entry.get("mtime", 0), "mtime", -untrusted.MAX_INT),
    }
