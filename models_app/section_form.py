"""The form of a section of a host's settings, from the catalogue: a control per field and per part of a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models_app.core.fields import SETTINGS_FIELDS, Field
from models_app.core.fields.field import INTEGER, NUMBER, PATH, SWITCH
from models_app.core.settings import Settings, record_to_mapping
from models_app.fleet_sections import FLEET_SECTIONS

FORM_SECTIONS = ("kv", "sampling", "advanced", "guards")
"""Sections that are plain forms, in the order of their tabs."""
_MOST_GIB = 1_000_000
_ON_A_PAGE_OF_THEIR_OWN = frozenset({"loraDir", "loraDirs"})
_FIELDS = {field.key: field for field in SETTINGS_FIELDS}


def _part(key: str, kind: str, label: str, help: str, unit: str = "") -> Field:  # noqa: A002
    low = 0 if kind in (INTEGER, NUMBER) else None
    high = _MOST_GIB if kind == NUMBER else None
    return Field(
        key=key,
        kind=kind,
        group="",
        label=label,
        help=help,
        unit=unit,
        minimum=low,
        maximum=high,
        nullable=kind != PATH,
    )


_PARTS: Mapping[str, Mapping[str, Field]] = {
    "slotCache": {
        "enable": _part("slotCache-enable", SWITCH, "Slot cache", "Keeps the context of ended conversations on disk."),
        "path": _part("slotCache-path", PATH, "Slot cache folder", "Blank: slotkv in the cache folder of the router."),
        "minSaveTokens": _part(
            "slotCache-minSaveTokens", INTEGER, "Least to save", "Shorter contexts are not written.", "tokens"
        ),
        "maxDiskGB": _part("slotCache-maxDiskGB", NUMBER, "Most on disk", "The oldest go first.", "GiB"),
        "maxSessions": _part("slotCache-maxSessions", INTEGER, "Most contexts", "Kept at once."),
        "preambleCaches": _part(
            "slotCache-preambleCaches", SWITCH, "Common beginnings", "Keeps shared system prompts as well."
        ),
    },
}
"""Block -> its parts that have a control; the other parts survive a save."""


def section_fields(section: str) -> tuple[Field, ...]:
    """The controls of a section. Nothing typed is the default, 0 and off are values."""
    fields: list[Field] = []
    for key in _keys(section):
        fields += _PARTS[key].values() if key in _PARTS else [_loose(_FIELDS[key])]
    return tuple(replace(field, group=section) for field in fields)


def _loose(field: Field) -> Field:
    numeric = field.kind in (SWITCH, INTEGER, NUMBER)
    return replace(field, default=None, nullable=numeric or field.nullable)


def flat_values(section: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Stored values by the keys of the controls."""
    values: dict[str, Any] = {}
    for key in _keys(section):
        if key in _PARTS:
            block = stored.get(key) or {}
            values |= {field.key: block[part] for part, field in _PARTS[key].items() if part in block}
        elif key in stored:
            values[key] = stored[key]
    return values


def nested_values(section: str, values: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """What the controls say as values of the section; what has no control here stays as it is stored."""
    nested = {key: value for key, value in stored.items() if key in _ON_A_PAGE_OF_THEIR_OWN}
    for key in _keys(section):
        if key not in _PARTS:
            nested[key] = _said(_loose(_FIELDS[key]), values.get(key))
            continue
        parts = _PARTS[key]
        block = {part: value for part, value in (stored.get(key) or {}).items() if part not in parts}
        block |= {part: values[field.key] for part, field in parts.items() if field.is_set(values.get(field.key))}
        nested[key] = block or None
    return {key: value for key, value in nested.items() if value is not None}


def _said(field: Field, value: Any) -> Any:
    if not field.is_set(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def default_values(section: str) -> dict[str, Any]:
    """What holds where nothing is set, by the keys of the controls."""
    document = record_to_mapping(Settings(), sparse=False)
    return flat_values(section, {key: document.get(key) for key in _keys(section)})


def _keys(section: str) -> list[str]:
    return [key for key in FLEET_SECTIONS[section].keys if key not in _ON_A_PAGE_OF_THEIR_OWN]
