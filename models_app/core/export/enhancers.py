"""Prompt enhancers in the file: the table for clients and the keys of image entries (config-yaml.md 4.5, 5.1, 6.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from models_app.core.settings.records import PromptEnhancer

REFUSED = "none"
"""A configured id that says: no enhancer, not even a detected one."""


def enhancer_table(enhancers: Iterable[PromptEnhancer]) -> dict[str, dict[str, Any]]:
    """`promptEnhancers` in written order. Half-typed rows (no model id) are left out; the last of equal ids wins."""
    last = {row.model.strip().lower(): row for row in enhancers if row.model.strip()}
    return {row.model.strip(): _row(row) for _, row in sorted(last.items())}


def _row(row: PromptEnhancer) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": row.name.strip(), "vision": row.vision, "systemPrompt": row.system_prompt}
    return {name: value for name, value in fields.items() if value}


def enhancer_keys(
    enhancers: Iterable[PromptEnhancer],
    text_id: str,
    edit_id: str,
    text_prompt: str = "",
    edit_prompt: str = "",
) -> dict[str, str]:
    """The enhancer keys of one image entry, from resolved ids.

    An id of the table is written in the table's spelling, another one as typed. A model's own prompt goes with the
    enhancer of its direction only.
    """
    spelling = {key.lower(): key for key in enhancer_table(enhancers)}
    fields = {"promptEnhancer": _served(text_id, spelling), "promptEnhancerEdit": _served(edit_id, spelling)}
    if fields["promptEnhancer"]:
        fields["promptEnhancerPrompt"] = text_prompt
    if fields["promptEnhancerEdit"]:
        fields["promptEnhancerEditPrompt"] = edit_prompt
    return {name: value for name, value in fields.items() if value}


def _served(typed: str, spelling: dict[str, str]) -> str:
    name = typed.strip()
    return "" if name.lower() in ("", REFUSED) else spelling.get(name.lower(), name)
