"""The strip of layers under a plan: which blocks lie on the GPU, whose experts are in RAM, which run on the CPU."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.catalog import Placement

_SHORT = (13, 11)
_TALL = (4, 20)


@dataclass(frozen=True, slots=True)
class Block:
    x: str
    width: str
    y: int
    height: int
    key: str


@dataclass(frozen=True, slots=True)
class LayerStrip:
    blocks: tuple[Block, ...]
    label: str
    legend: str


def layer_strip(block_count: int, placement: Placement) -> LayerStrip | None:
    """llama.cpp fills the GPU from the last layer back and moves experts out from the first on. None without layers."""
    if block_count <= 0 or block_count > 512:
        return None
    first_on_gpu = max(block_count + 1 - placement.gpu_layers, 0)
    step = 100 / block_count
    blocks = []
    for index in range(block_count):
        on_gpu = index >= first_on_gpu and placement.gpu_layers > 0
        whole = on_gpu and index >= placement.cpu_moe_layers
        y, height = _TALL if on_gpu else _SHORT
        key = "weights" if whole else "kv" if on_gpu else "other"
        blocks.append(Block(f"{index * step:.2f}%", f"{step * 0.8:.2f}%", y, height, key))
    return LayerStrip(tuple(blocks), _label(block_count, first_on_gpu, placement), _legend(blocks))


def _legend(blocks: list[Block]) -> str:
    """What the heights and colours mean, where there is more than one kind."""
    kinds = {block.key for block in blocks}
    if len(kinds) < 2:
        return ""
    words = {"other": "Short: on the CPU.", "kv": "Light: experts in RAM.", "weights": "Tall: on the GPU."}
    return " ".join(text for key, text in words.items() if key in kinds)


def _label(block_count: int, first_on_gpu: int, placement: Placement) -> str:
    if placement.gpu_layers <= 0:
        return f"All {block_count} layers on the CPU."
    parts = [f"{block_count} layers"]
    if first_on_gpu > 0:
        parts.append(f"the first {min(first_on_gpu, block_count)} on the CPU")
    if placement.cpu_moe_layers > 0:
        parts.append(f"the experts of the first {placement.cpu_moe_layers} in RAM")
    if len(parts) == 1:
        parts.append("all on the GPU")
    return ", ".join(parts) + "."
