"""Decision models: headers with `<arch>.decision.type` (classes.md 9)."""

from __future__ import annotations

from models_app.core.catalog import Header
from models_app.core.classes.registry import ModelClass


def match(file_name: str, header: Header | None) -> str:
    return f"decision type {header.decision_type}" if header is not None and header.decision_type else ""


DECISION = ModelClass("decision", "Decision", "llm", match, takes_sidecars=True)
