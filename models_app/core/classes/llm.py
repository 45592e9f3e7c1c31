"""Chat and completion models for llama-server: whatever has an architecture and no other class."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass

FOREIGN_ARCHITECTURES = {
    "whisper": "a Whisper transcription model; no engine here serves it",
}
"""GGUF files of other programs, which llama-server refuses to load."""


def unservable_reason(header: Header | None) -> str:
    """Why llama-server cannot serve this header: another program's, a classifier, or attention that sees the future."""
    if header is None:
        return ""
    if foreign := FOREIGN_ARCHITECTURES.get(header.architecture.strip().lower()):
        return foreign
    if header.pooling_type > 0 or header.decision_type:
        return ""
    if header.classifier_head:
        return "a classifier (it has output labels); llama-server cannot serve it"
    if header.non_causal:
        return "attention is not causal and there is no pooling type; llama-server cannot serve it"
    return ""


def is_vision_language_model(name: str, architecture: str) -> bool:
    """Was the model made for pictures? Its vision twin's window is capped by the sizing rules."""
    return "vl" in name.lower() or "vl" in architecture.lower()


def match(file_name: str, header: Header | None) -> str:
    return f"architecture {header.architecture}" if header is not None and header.architecture.strip() else ""


LLM = ModelClass("llm", "Language", "llm", match, takes_sidecars=True)
