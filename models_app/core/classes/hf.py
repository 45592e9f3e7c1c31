"""Hugging Face folders: `config.json` beside safetensors, served by vllm (classes.md 14)."""

from __future__ import annotations

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


HF = ModelClass("hf", "Hugging Face", "llm", match)
