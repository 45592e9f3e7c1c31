"""SAM: segmentation on the CPU (classes.md 4)."""

from __future__ import annotations

from models_app.core.catalog import Reason
from models_app.core.launch.macros import PORT
from models_app.core.launch.paths import argument_path
from models_app.core.plans.engines.request import Answer, Request

ENTRY = {
    "checkEndpoint": "/health",
    "capabilities": {"segmentation": True, "in": ["image"], "out": ["image"]},
}


def plan(request: Request) -> Answer:
    """The engine returns garbage on a GPU, so nothing is sized; only the fleet's thread count is read."""
    lines = [f"--model {argument_path(request.row.full_path)}", "--host 127.0.0.1", f"--port {PORT}"]
    if request.settings.threads > 0:
        lines.append(f"--threads {request.settings.threads}")
    return Answer(
        request.command(request.executable().path, lines),
        {"file": request.row.file_name},
        entry=dict(ENTRY),
        engine="sam",
        reasons=[Reason("on-cpu", "On a GPU this engine returns garbage, so it is kept on the CPU.")],
    )
