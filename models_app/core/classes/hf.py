"""Hugging Face folders: `config.json` beside safetensors, served by vllm (classes.md 14)."""

from __future__ import annotations

import math

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass

TOOL_PARSERS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("qwen3", "qwen3_moe"), "coder", "qwen3_coder"),
    (("qwen3",), "", "hermes"),
    (("qwen3_5",), "", "qwen3_coder"),
    (("llama",), "", "llama3_json"),
)
"""(architectures, word in the name, parser of vllm), most specific first."""
NO_PARSER = "none"
ENGINE_OVERHEAD_GIB = 1.5
LEAST_WINDOW_TOKENS = 4096
DEFAULT_UTILISATION = 0.90
LEAST_UTILISATION = 0.10
MOST_UTILISATION = 0.95


def match(file_name: str, header: Header | None) -> str:
    return "a folder with config.json and safetensors" if header is not None and header.format == "hf" else ""


def tool_parser(architecture: str, name: str, chosen: str = "") -> str:
    """The tool-call parser of vllm for a model, "" for none. A chosen one wins; `none` switches off."""
    chosen = chosen.strip()
    if chosen:
        return "" if chosen.lower() == NO_PARSER else chosen
    wanted = architecture.strip().lower()
    for architectures, word, parser in TOOL_PARSERS:
        if wanted in architectures and word in name.lower():
            return parser
    return ""


def footprint_gib(budget_gib: float, size_gib: float, kv_gib: float) -> float:
    """What vllm may hold: weights, KV and the engine itself, never above the budget."""
    return min(budget_gib, size_gib + kv_gib + ENGINE_OVERHEAD_GIB)


def window_without_room(budget_gib: float, size_gib: float, trained_tokens: int) -> int | None:
    """The least window when the weights alone exceed the budget, None when there is room to size one."""
    if budget_gib - size_gib - ENGINE_OVERHEAD_GIB > 0:
        return None
    return min(LEAST_WINDOW_TOKENS, trained_tokens) if trained_tokens else LEAST_WINDOW_TOKENS


def utilisation(footprint: float, card: float, pinned: float = 0.0) -> float:
    """Value of `--gpu-memory-utilization`, in whole hundredths; a pinned one is taken as it is."""
    if pinned > 0:
        return pinned
    if card <= 0:
        return DEFAULT_UTILISATION
    share = math.ceil(100 * footprint / card - 1e-9) / 100
    return min(max(share, LEAST_UTILISATION), MOST_UTILISATION)


HF = ModelClass("hf", "Hugging Face", "llm", match)
