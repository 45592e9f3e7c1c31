"""The registry of router dialects: one row per file format that we write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models_app.core.export import llama_swap, quartermaster
from models_app.core.export.document import Document
from models_app.core.export.llama_swap import Options


@dataclass(frozen=True, slots=True)
class Dialect:
    """One router's file. `convert` makes it from the document that `build_document` gives."""

    slug: str
    label: str
    convert: Callable[[Document, Options], Document]
    stops_models_on_reload: bool
    """A changed file makes the router stop every running model."""
    scopes_keys: bool
    """API keys can be limited to some models."""


DIALECTS: tuple[Dialect, ...] = (
    Dialect("llama-swap", "llama-swap", llama_swap.convert, stops_models_on_reload=True, scopes_keys=False),
    Dialect("quartermaster", "quartermaster", quartermaster.convert, stops_models_on_reload=False, scopes_keys=True),
)
BY_SLUG = {dialect.slug: dialect for dialect in DIALECTS}
DEFAULT_DIALECT = DIALECTS[0].slug
