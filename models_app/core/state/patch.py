"""The settings patch: what pages changed, field by field, over the generate file (state.md 9).

A patch is a plain map of YAML keys with non-null values. An empty map among them is a value: an explicit clear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from models_app.core.fields import PATCH_FIELDS, Field
from models_app.core.settings import record_to_mapping, settings_from_mapping

Patch = dict[str, Any]

MEMORY = "memory"
GUARDS = "guards"
ADVANCED = "advanced"

SECTIONS: dict[str, tuple[str, ...]] = {
    MEMORY: ("targetVramGB", "vramOverheadGB", "maxRamGB", "ttlSec", "autoVram"),
    GUARDS: (
        "oomGuardEvict",
        "oomGuardReserveGB",
        "oomGuardGraceSec",
        "minGpuFraction",
        "spawnGuard",
        "multiResident",
        "multiGpu",
    ),
    ADVANCED: (
        "computeBufFactor",
        "visionOverheadGB",
        "visionCtx",
        "moeCtxTarget",
        "denseMinCtx",
        "denseCtxLadder",
        "threads",
        "healthCheckTimeout",
        "kvQuant",
        "loraDir",
        "loraDirs",
        "minGpuVramGB",
        "sharedMemory",
        "poolIntegratedGpu",
    ),
    "sampling": ("dryDefault",),
}
"""Fields of each form of the headless contract; a page may group them more finely (`Field.group`)."""

_FIELDS: dict[str, Field] = {field.key: field for field in PATCH_FIELDS}


def patch_from_mapping(document: Mapping[str, Any]) -> Patch:
    """The non-null patch fields of a document, with their types checked. Other keys are ignored."""
    given = {key: value for key, value in document.items() if key in _FIELDS and value is not None}
    typed = record_to_mapping(settings_from_mapping(given), sparse=False)
    return {key: typed[key] for key in given}


def merge_patch(stored: Mapping[str, Any], incoming: Mapping[str, Any]) -> Patch:
    """A normal save: null keeps the stored value, each section sends only its own fields."""
    return {**patch_from_mapping(stored), **patch_from_mapping(incoming)}


def replace_patch(incoming: Mapping[str, Any]) -> Patch | None:
    """A whole new patch; None removes the block."""
    return patch_from_mapping(incoming) or None


def without(stored: Mapping[str, Any], keys: Iterable[str]) -> Patch:
    """The stored patch with some fields cleared: they show the file's values again."""
    gone = set(keys)
    return {key: value for key, value in patch_from_mapping(stored).items() if key not in gone}


def save_section(section: str, stored: Mapping[str, Any], body: Mapping[str, Any]) -> Patch:
    """The patch after a form was saved. The form must have been accepted (`forms.section_errors`).

    In the advanced form 0, null and blank clear the knob: its fields are cleared, then what is left is merged. A target
    set by hand switches `autoVram` off.
    """
    sent = {key: value for key, value in body.items() if key in SECTIONS[section]}
    if section == MEMORY and sent.get("targetVramGB") is not None:
        return merge_patch(stored, {**sent, "autoVram": False})
    if section == ADVANCED:
        kept = {key: value for key, value in sent.items() if key == "poolIntegratedGpu" or value not in (0, "", [], {})}
        return merge_patch(without(stored, SECTIONS[section]), kept)
    return merge_patch(stored, sent)


def reset_section(section: str, stored: Mapping[str, Any]) -> Patch:
    """The patch after a section was reset: its fields go, the others stay."""
    return without(stored, SECTIONS[section])
