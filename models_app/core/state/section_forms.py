"""May a settings form be saved? The ranges of the catalogue, and what is special about a section (state.md 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models_app.core.errors import SettingsError
from models_app.core.fields import CATEGORIES, PATCH_FIELDS
from models_app.core.state.patch import ADVANCED, SECTIONS, patch_from_mapping
from models_app.core.state.values import field_problem

_FIELDS = {field.key: replace(field, nullable=True) for field in PATCH_FIELDS}
"""In a patch 0 and false are values, so they are checked like any other."""


def section_errors(section: str, body: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with a form, by YAML key; empty when it may be saved.

    0, null and blank clear a knob of the advanced form; elsewhere 0 is a value and must lie in the field's range.
    """
    sent = {key: body[key] for key in SECTIONS[section] if body.get(key) is not None}
    if isinstance(sent.get("sharedMemory"), str):
        sent["sharedMemory"] = sent["sharedMemory"].strip().lower()
    errors: dict[str, str] = {}
    for key, value in sent.items():
        try:
            patch_from_mapping({key: value})
        except SettingsError as error:
            errors[key] = str(error)
            continue
        problem = "" if section == ADVANCED and value in (0, "", [], {}) else _problem(key, value)
        if problem:
            errors[key] = problem
    return errors


def _problem(key: str, value: Any) -> str:
    if key == "loraDirs":
        unknown = sorted(set(value) - set(CATEGORIES))
        return f"{unknown[0]} is not a category: {', '.join(CATEGORIES)}." if unknown else ""
    return field_problem(_FIELDS[key], value)


def slot_cache_errors(block: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with a slot cache form, by key."""
    return {
        key: "Give 0 or more."
        for key in ("minSaveTokens", "maxDiskGB", "maxSessions")
        if isinstance(block.get(key), int | float) and block[key] < 0
    }


def default_variants_errors(names: list[str]) -> dict[int, str]:
    """Rows of fleet variants without a name, by index."""
    return {index: "Every variant needs a name." for index, name in enumerate(names) if not name.strip()}
