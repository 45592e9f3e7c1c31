"""TRELLIS.2: image to 3D (classes.md 5)."""

from __future__ import annotations

import os

from models_app.core.discovery.inventory import NO_DINO
from models_app.core.launch.macros import PORT
from models_app.core.launch.paths import forward, quoted_path
from models_app.core.plans.engines.request import FITS, OVER, Answer, Request, number_after, term

CACHE_BUDGET_MIB = 8192
BUDGET_FLAG = "--model-cache-budget-mib"
SIMPLIFY_FLAG = "--mesh-postprocess-simplify"
WHOLE_MESH = f"the help of this build names no {SIMPLIFY_FLAG}, so its meshes have millions of triangles"
WORK_MIB = 3 * 1024
"""What a generation takes beside the cache of weights."""
MIB_PER_GIB = 1024
ENTRY = {"checkEndpoint": "/health", "capabilities": {"in": ["image"], "out": ["3d"]}}


def skip_reason(request: Request) -> str:
    return "" if request.row.dino_path else NO_DINO


def plan(request: Request) -> Answer:
    """The estimate follows the cache budget, also where a person gives another one."""
    row = request.row
    lines = [f"--model {quoted_path(row.full_path)}", f"--dino {quoted_path(row.dino_path)}"]
    if row.birefnet_path:
        lines.append(f"--birefnet {quoted_path(row.birefnet_path)}")
    lines += ["--host 127.0.0.1", f"--port {PORT}", f"{BUDGET_FLAG} {CACHE_BUDGET_MIB}"]
    known = request.surroundings.flags
    simplifies = known is None or SIMPLIFY_FLAG in known
    lines += [SIMPLIFY_FLAG] if simplifies else []
    command = request.command(request.executable().path, lines)
    cache_gib = max(0, number_after(command, BUDGET_FLAG, CACHE_BUDGET_MIB)) / MIB_PER_GIB
    work_gib = WORK_MIB / MIB_PER_GIB
    total_gib = cache_gib + work_gib
    answer = Answer(
        command,
        {"folder": os.path.basename(forward(row.full_path))},
        est_vram_gib=total_gib,
        verdict=FITS if total_gib <= request.settings.target_vram_gb else OVER,
        entry=dict(ENTRY),
        engine="trellis2",
        terms=[
            term("weights", "Cache of weights", f"the value of {BUDGET_FLAG}", vram_gib=cache_gib),
            term("compute", "Generation", "three GiB for one generation, measured by its authors", vram_gib=work_gib),
        ],
    )
    if not simplifies:
        answer.notes.append(WHOLE_MESH)
    return answer
