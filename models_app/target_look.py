"""What a host finds at the path of its router's file: the host's task, and how the control side takes it."""

from __future__ import annotations

from typing import Any

from models_app import target_file
from quartermaster_site.jobs.host_tasks import host_task
from quartermaster_site.jobs.reporting import Reporter


@host_task("models_app.target_look.look_at_target")
def look_at_target(report: Reporter, inputs: dict[str, Any]) -> dict[str, Any]:
    """Hash and size of the file at `path`; both empty where there is none."""
    report.progress("Looking", 0, 1)
    seen = target_file.look(inputs["path"])
    return {"path": inputs["path"], "sha256": seen.sha256, "size_bytes": seen.size_bytes, "problem": seen.problem}
