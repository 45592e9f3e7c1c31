"""What a host finds at the path of its router's file: as a job, and again and again without one. Imports no Django."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from models_app import folder_events, target_file
from models_app.core.export.stamp import read_stamp
from quartermaster_site import env
from quartermaster_site.celery import app
from quartermaster_site.jobs.dispatch import CONTROL_QUEUE, send
from quartermaster_site.jobs.host_tasks import host_task
from quartermaster_site.jobs.reporting import Reporter


@host_task("models_app.target_look.look_at_target")
def look_at_target(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """What lies at `path`: {"path", "known": hashes whose text the control side has}."""
    report.progress("Looking", 0, 1)
    return found_at(inputs["path"], inputs.get("known", ()))


@app.task(name="models_app.target_look.look_at_file")  # type: ignore[untyped-decorator]
def look_at_file(slug: str, token: str, path: str, known: list[str]) -> None:
    """The same without a job: it is asked every minute, and when the system says that the file changes."""
    if env.role() in ("host", "all"):
        folder_events.follow_file(
            os.path.realpath(path), lambda: send("models_app.tasks.target_stirs", CONTROL_QUEUE, slug=slug)
        )
    answer = found_at(path, known)
    send("models_app.tasks.target_looked_at", CONTROL_QUEUE, slug=slug, token=token, answer=answer)


def found_at(path: str, known: Collection[str]) -> dict[str, Any]:
    """Hash, size, time and header of a file, and its text where nobody has it yet; all empty where there is none."""
    try:
        target_file.require_place(path, env.target_roots())
    except target_file.TargetRefused as refused:
        seen = target_file.Seen(problem=str(refused))
    else:
        seen = target_file.look(path)
    return {
        "path": path,
        "sha256": seen.sha256,
        "size_bytes": seen.size_bytes,
        "modified_seconds": seen.modified_seconds,
        "has_header": read_stamp(seen.text) is not None,
        "text": "" if seen.sha256 in known else seen.text,
        "problem": seen.problem,
    }
