"""Segmentation: SAM models in `.ggml`, known by name alone (classes.md 4). The header is never read."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass

NAME_TOKENS = ("sam2", "sam3", "edgetam", "hiera")


def is_sam_name(file_name: str) -> bool:
    """A `.ggml` file (any case) whose name carries the token of a model family."""
    lower = file_name.lower()
    return lower.endswith(".ggml") and any(token in lower for token in NAME_TOKENS)


def match(file_name: str, header: Header | None) -> str:
    return "a .ggml file with the name of a segmentation model" if is_sam_name(file_name) else ""


SAM = ModelClass("sam", "Segmentation", "segment", match)
