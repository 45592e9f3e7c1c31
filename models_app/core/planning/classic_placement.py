"""Classic placement: layers and experts by equal shares of the file (sizing.md 9). Figures are GiB."""

from __future__ import annotations

import math
from dataclasses import dataclass

from models_app.core.catalog import Header
from models_app.core.errors import PlanError
from models_app.core.units import round_half_up

ALL_LAYERS = 99
"""What is emitted for "everything on the GPU"."""

DEFAULT_KV_GIB = 1.0
DEFAULT_OVERHEAD_GIB = 0.5
_CROSSOVER_SHARE = 0.5

_EXPERT_SHARES = {
    "gemma4": 0.88,
    "qwen3": 0.90,
    "qwen3moe": 0.90,
    "qwen35moe": 0.90,
    "llama": 0.80,
    "lfm2": 0.78,
    "lfm2moe": 0.78,
}
_OTHER_SHARE = 0.85


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Layers on the GPU, layers whose experts are in RAM, and what lies where."""

    gpu_layers: int
    cpu_moe_layers: int
    vram_gib: float
    ram_gib: float
    ram_exceeded: bool = False


def expert_share(architecture: str, header_share: float) -> float:
    """Share of the weights that are experts: the header's, else the architecture's."""
    return header_share if header_share > 0 else _EXPERT_SHARES.get(architecture, _OTHER_SHARE)


def load_plan(
    header: Header,
    target_gib: float,
    max_ram_gib: float,
    kv_gib: float | None = None,
    overhead_gib: float | None = None,
) -> LoadPlan:
    """The reference's placement under a budget."""
    kv = DEFAULT_KV_GIB if kv_gib is None else kv_gib
    overhead = DEFAULT_OVERHEAD_GIB if overhead_gib is None else overhead_gib
    size = header.file_size_gib
    if header.block_count <= 0 or size <= 0:
        raise PlanError("the header names no blocks or the file is empty: no placement can be planned")
    usable = max(0.0, target_gib - kv - overhead)
    if size <= usable:
        return _rounded(ALL_LAYERS, 0, size + kv + overhead, 0.0, max_ram_gib)
    if header.is_moe:
        plan = _expert_plan(header, usable, kv + overhead, max_ram_gib)
        if plan is not None:
            return plan
    return _dense_plan(header, target_gib, kv, overhead, max_ram_gib)


def force_low_active_moe(header: Header, target_gib: float, kv_gib: float, overhead_gib: float) -> tuple[int, int]:
    """A layer split of a mixture turned back into an expert split: (gpu layers, layers with experts in RAM)."""
    reserve = kv_gib if kv_gib > 0 else DEFAULT_KV_GIB
    usable = target_gib - reserve - overhead_gib
    size, share, blocks = _mixture(header)
    per_layer = size * share / blocks
    on_gpu = math.floor((usable - size * (1 - share)) / per_layer) if per_layer > 0 else blocks
    return ALL_LAYERS, blocks - min(blocks, max(0, on_gpu))


def forced_offload(block_count: int, is_moe: bool, cpu_layers: int) -> tuple[int, int]:
    """The reference's placement for a pinned offload: (gpu layers, layers with experts in RAM)."""
    layers = min(max(0, cpu_layers), block_count)
    return (ALL_LAYERS, layers) if is_moe else (block_count - layers, 0)


def reprice(
    header: Header,
    gpu_layers: int,
    cpu_moe_layers: int,
    target_gib: float,
    kv_gib: float,
    checkpoint_gib: float,
    overhead_gib: float,
) -> tuple[float, float]:
    """VRAM and RAM of a placement that is not the plan's own."""
    if header.block_count <= 0:
        return target_gib, 0.0
    if header.is_moe:
        size, share, blocks = _mixture(header)
        in_ram = min(cpu_moe_layers, blocks)
        vram = size * (1 - share) + size * share * (blocks - in_ram) / blocks + kv_gib + checkpoint_gib + overhead_gib
        return vram, size * share * in_ram / blocks
    fraction = min(1.0, gpu_layers / header.block_count)
    movable = header.file_size_gib + kv_gib + checkpoint_gib
    return fraction * movable + overhead_gib, (1 - fraction) * movable


def _mixture(header: Header) -> tuple[float, float, int]:
    return (
        header.file_size_gib,
        expert_share(header.architecture, header.expert_weight_share),
        max(1, header.block_count),
    )


def _expert_plan(header: Header, usable: float, fixed: float, max_ram_gib: float) -> LoadPlan | None:
    size, share, blocks = _mixture(header)
    rest = size * (1 - share)
    room = usable - rest
    if room <= 0:
        return None
    on_gpu = min(blocks, math.floor(room / (size * share / blocks)))
    in_ram = max(0, blocks - on_gpu)
    if in_ram > _CROSSOVER_SHARE * blocks:
        return None
    vram = rest + size * share * (blocks - in_ram) / blocks + fixed
    return _rounded(ALL_LAYERS, in_ram, vram, size * share * in_ram / blocks, max_ram_gib)


def _dense_plan(header: Header, target_gib: float, kv: float, overhead: float, max_ram_gib: float) -> LoadPlan:
    movable = header.file_size_gib + kv
    per_layer = movable / header.block_count
    layers = min(max(0, math.floor((target_gib - overhead) / per_layer)), header.block_count + 1)
    fraction = min(1.0, layers / header.block_count)
    return _rounded(layers, 0, fraction * movable + overhead, (1 - fraction) * movable, max_ram_gib)


def _rounded(gpu_layers: int, cpu_moe_layers: int, vram: float, ram: float, max_ram_gib: float) -> LoadPlan:
    vram_gib, ram_gib = round_half_up(vram, 2), round_half_up(ram, 2)
    return LoadPlan(gpu_layers, cpu_moe_layers, vram_gib, ram_gib, max_ram_gib > 0 and ram_gib > max_ram_gib)
