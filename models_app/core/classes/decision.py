"""Decision models: headers with `<arch>.decision.type` (classes.md 9)."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass

WINDOW_LIMIT_TOKENS = 8192


def match(file_name: str, header: Header | None) -> str:
    return f"decision type {header.decision_type}" if header is not None and header.decision_type else ""


def window_tokens(trained_tokens: int, pinned_tokens: int = 0) -> int:
    """The pinned window, else the trained one up to the limit; the limit too where the header names none."""
    if pinned_tokens > 0:
        return pinned_tokens
    return min(trained_tokens or WINDOW_LIMIT_TOKENS, WINDOW_LIMIT_TOKENS)


DECISION = ModelClass("decision", "Decision", "llm", match, takes_sidecars=True)
