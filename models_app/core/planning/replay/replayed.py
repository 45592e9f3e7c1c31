"""The compute buffers of a launch whose graph is known."""

from __future__ import annotations

from models_app.core.planning.graph_sizes import output_rows
from models_app.core.planning.launched import PIPELINE_COPIES, Launched, Stage
from models_app.core.planning.replay.building import Build, Homes
from models_app.core.planning.replay.models import whole_graph
from models_app.core.planning.replay.scheduler import compute_buffers


def replayed_compute(run: Launched, stages: list[Stage]) -> list[int] | None:
    """Bytes of the compute buffer of every device and, last, of the host. None where the graph is not known."""
    shape = run.table.shape
    if shape is None or not run.launch.kv_offload or run.launch.draft_tokens or run.launch.embeddings:
        return None
    build = Build(shape, run.launch, run.geo, _homes(run, stages), output_rows(run.table, run.launch, run.geo))
    return compute_buffers(whole_graph(build), PIPELINE_COPIES if run.pipelined else 1)


def _homes(run: Launched, stages: list[Stage]) -> Homes:
    host, trunk = len(stages), run.table.trunk
    blocks, output = [host] * trunk, host
    for place, stage in enumerate(stages):
        blocks[stage.start : stage.end] = [place] * (stage.end - stage.start)
        if stage.has_output:
            output = place
    away = run.cpu_moe_blocks
    return Homes(
        blocks=tuple(blocks),
        experts=(host,) * away + tuple(blocks[away:]),
        output=output,
        host=host,
    )
