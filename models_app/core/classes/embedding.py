"""Embedders and rerankers: a pooling type, or an encoder architecture (classes.md 10)."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass, has_prefix

ARCHITECTURES = ("bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "xlm-roberta", "roberta", "gte")
WINDOW_LIMIT_TOKENS = 8192
UNKNOWN_WINDOW_TOKENS = 512


def match(file_name: str, header: Header | None) -> str:
    if header is None:
        return ""
    if header.pooling_type > 0:
        return f"pooling type {header.pooling_type}"
    if has_prefix(header.architecture, ARCHITECTURES):
        return f"embedder architecture {header.architecture.strip()}"
    return ""


def window_tokens(trained_tokens: int, pinned_tokens: int = 0) -> int:
    """The pinned window, else the trained one up to the limit."""
    if pinned_tokens > 0:
        return pinned_tokens
    return min(trained_tokens or UNKNOWN_WINDOW_TOKENS, WINDOW_LIMIT_TOKENS)


EMBEDDING = ModelClass("embedding", "Embedding", "embed", match)
