"""The strip of layers under a plan: which blocks lie on the GPU, whose experts are in RAM, which run on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from models_app.core.catalog import Placement

_SHORT = (13, 11)
_TALL = (4, 20)


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring blocks of one kind, drawn as one dashed line with a dash a block. Places are shares of the width."""

    start: str
    end: str
    count: int
    y: float
    height: int
    key: str


@dataclass(frozen=True, slots=True)
class LayerStrip:
    runs: tuple[Run, ...]
    label: str
    legend: str


def layer_strip(block_count: int, placement: Placement) -> LayerStrip | None:
    """llama.cpp fills the GPU from the last layer back and moves experts out from the first on. None without layers."""
    if block_count <= 0 or block_count > 512:
        return None
    first_on_gpu = max(block_count + 1 - placement.gpu_layers, 0)
    kinds = []
    for index in range(block_count):
        on_gpu = index >= first_on_gpu and placement.gpu_layers > 0
        whole = on_gpu and index >= placement.cpu_moe_layers
        kinds.append("weights" if whole else "kv" if on_gpu else "other")
    runs, start = [], 0
    for key, members in groupby(kinds):
        end = start + len(list(members))
        y, height = _SHORT if key == "other" else _TALL
        left, right = (f"{100 * place / block_count:.2f}%" for place in (start, end))
        runs.append(Run(left, right, end - start, y + height / 2, height, key))
        start = end
    return LayerStrip(tuple(runs), _label(block_count, first_on_gpu, placement), _legend(set(kinds)))


def _legend(kinds: set[str]) -> str:
    """What the heights and colours mean, where there is more than one kind."""
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
