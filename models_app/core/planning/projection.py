"""What exactly one launch allocates: bytes per device and on the host, from a model's table and nothing else.

No search, no budget. Weights and context are llama.cpp's own figures to the byte, compute buffers are close
(compute-buffer.md 5 has the error table). Outside of it: driver and library contexts, the projector, the drafter.
"""

from __future__ import annotations

from collections.abc import Callable

from models_app.core.catalog import Launch, MemoryUse, Projection
from models_app.core.planning.compute import device_compute, host_compute
from models_app.core.planning.compute_cuda import streamed_compute
from models_app.core.planning.context import context_bytes
from models_app.core.planning.geometry import Geometry, geometry
from models_app.core.planning.graph_sizes import graph_sizes
from models_app.core.planning.launched import SERVER_OUTPUTS, Launched, Stage
from models_app.core.planning.model_facts import ModelTable
from models_app.core.planning.weight_placement import Split, split_units

HOST = "host"


def project(table: ModelTable, launch: Launch, *, cuda: bool = False, replays: bool | None = None) -> Projection:
    """Bytes of a launch.

    `replays`: compute buffers come from llama.cpp's own work done again, where the model's graph is known; that takes
    some milliseconds. False: from the formulas that plans are made with. None: as llama.cpp's for `outputs="all"`, the
    launch of llama-fit-params, and as plans' for the server.

    `cuda` adds what a CUDA device does beyond the plain rules: it converts quantised caches and copies host weights
    in for large batches (compute-buffer.md 6). The default is a device that does neither, as llama.cpp's own
    projection for a remote device shows it.
    """
    run, stages = laid_out(table, launch, cuda=cuda)
    if replays is None:
        replays = launch.outputs != SERVER_OUTPUTS
    replayed = _replayed(run, stages) if replays and not cuda else None
    *compute, on_host = replayed or (*(device_compute(run, stage) for stage in stages), host_compute(run))
    if cuda:
        compute, on_host = streamed_compute(run, stages, compute, on_host)
    devices = tuple(
        MemoryUse(
            name=f"GPU{number}",
            model_bytes=_device_weights(run, stage),
            context_bytes=_context(run, stage.start, stage.end) if launch.kv_offload else 0,
            compute_bytes=compute[number],
        )
        for number, stage in enumerate(stages)
    )
    host_context = table.trunk if not launch.kv_offload else run.host_blocks
    host = MemoryUse(HOST, _host_weights(run), _context(run, 0, host_context), on_host)
    return Projection(table.engine, devices, host, table.warnings)


def _replayed(run: Launched, stages: list[Stage]) -> list[int] | None:
    from models_app.core.planning.replay.replayed import replayed_compute  # a large part that plans do without

    return replayed_compute(run, stages)


def laid_out(table: ModelTable, launch: Launch, *, cuda: bool = False) -> tuple[Launched, list[Stage]]:
    """A launch taken apart, and the part of every device."""
    geo = geometry(launch, table.window, table.trained_tokens)
    split = split_units(table.blocks, launch.gpu_layers, _shares(launch))
    return _launched(table, launch, geo, split, cuda), [_stage(table, start, end) for start, end in split.ranges]


def load_of_units(
    table: ModelTable, launch: Launch, *, cuda: bool = False, compute_factor: float = 1.0
) -> Callable[[int, int, bool], int]:
    """What one of several devices would hold: a function of the first of its units, the first after them, and whether
    it is the first device. The split of the launch itself is not looked at; the result is that of `project`, with the
    compute buffer times a safety factor.
    """
    geo = geometry(launch, table.window, table.trained_tokens)
    split = split_units(table.blocks, launch.gpu_layers, (1.0,))
    run = _launched(table, launch, geo, split, cuda)

    def load(start: int, end: int, is_first: bool) -> int:
        stage = _stage(table, start, end)
        compute = device_compute(run, stage)
        if cuda and is_first:
            compute = streamed_compute(run, [stage], [compute], 0)[0][0]
        context = _context(run, stage.start, stage.end) if launch.kv_offload else 0
        return _device_weights(run, stage) + context + int(compute * compute_factor)

    return load


def _shares(launch: Launch) -> tuple[float, ...]:
    """Shares of the devices. Without a split they follow free memory, here taken for equal."""
    return launch.tensor_split or (1.0,) * launch.devices


def _launched(table: ModelTable, launch: Launch, geo: Geometry, split: Split, cuda: bool) -> Launched:
    host_blocks = min(split.first_unit, table.trunk)
    limit = min(launch.cpu_moe_layers, table.trunk)
    experts = table.sums.expert_bytes
    moved = limit > host_blocks and experts[limit] > experts[host_blocks]
    whole = split.first_unit == 0 and launch.cpu_moe_layers == 0 and launch.kv_offload
    return Launched(
        table=table,
        launch=launch,
        geo=geo,
        sizes=graph_sizes(table, launch, geo, cuda=cuda),
        host_blocks=host_blocks,
        host_has_output=split.first_unit > table.blocks,
        cpu_moe_blocks=limit if moved else 0,
        pipelined=whole and launch.devices > 1,
    )


def _stage(table: ModelTable, start: int, end: int) -> Stage:
    return Stage(min(start, table.trunk), min(end, table.trunk), has_output=start <= table.blocks < end)


def _context(run: Launched, start: int, end: int) -> int:
    return context_bytes(run.table, run.launch, run.geo, start, end).total


def _device_weights(run: Launched, stage: Stage) -> int:
    """Blocks of a stage without the experts that stay on the host, and the tensors that go with them."""
    sums, parts = run.table.sums, run.table.globals
    start, end = stage.start, stage.end
    own_experts = min(max(start, run.cpu_moe_blocks), end)
    total = sums.other_bytes[end] - sums.other_bytes[start]
    total += sums.expert_bytes[end] - sums.expert_bytes[own_experts]
    if start == 0 < end:
        total += parts.first_block
    if stage.has_output:
        total += parts.output + parts.tied
    if sums.reads_rope[end] > sums.reads_rope[start]:
        total += parts.rope
    return total


def _host_weights(run: Launched) -> int:
    table, sums, parts, blocks = run.table, run.table.sums, run.table.globals, run.host_blocks
    experts = max(blocks, run.cpu_moe_blocks)
    total = parts.host + sums.other_bytes[blocks] + sums.expert_bytes[experts]
    if blocks:
        total += parts.first_block
    if run.host_has_output:
        total += parts.output + (parts.tied if table.rules.tied_on_host else 0)
    if sums.reads_rope[blocks]:
        total += parts.rope
    return total
