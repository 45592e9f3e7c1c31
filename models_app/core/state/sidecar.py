"""What the UI owns, as one immutable value, and its YAML form (state.md 8.1).

Lists are None while nobody set one: an empty list is a decision, and hides the generate file's list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models_app.core.settings import (
    ApiKey,
    AppSettings,
    BackendEntry,
    BackendSource,
    ExtraImageModel,
    Override,
    PromptEnhancer,
    SlotCache,
    Variant,
    record_from_mapping,
    record_to_mapping,
)
from models_app.core.state.patch import patch_from_mapping

FILE_NAME = "quartermaster-overrides.yaml"
"""Beside the generate file."""

_STORED_SLOT_CACHE = {"minSaveTokens": 0, "maxDiskGB": 0, "maxSessions": 0}
"""A stored block replaces the file's whole, and its zeros stay."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Everything a page can change, over the generate file."""

    settings: Mapping[str, Any] | None = None
    """The settings patch; None without one."""
    overrides: tuple[Override, ...] = ()
    default_variants: tuple[Variant, ...] | None = None
    api_keys: tuple[ApiKey, ...] | None = None
    prompt_enhancers: tuple[PromptEnhancer, ...] | None = None
    display_names: Mapping[str, str] = field(default_factory=dict)
    category_roots: Mapping[str, str] = field(default_factory=dict)
    slot_cache: SlotCache | None = None
    backends: Mapping[str, str] | None = None
    """Executables by settings key, derived from `backend_list`."""
    backend_list: tuple[BackendEntry, ...] = ()
    backend_sources: tuple[BackendSource, ...] = ()
    extra_image_models: tuple[ExtraImageModel, ...] = ()
    removed_extra_image_models: tuple[str, ...] = ()
    app: AppSettings | None = None


def sidecar_from_mapping(document: Mapping[str, Any] | None) -> Sidecar:
    """A sidecar from its YAML form; an empty or missing file is empty state."""
    given = dict(document or {})
    block = given.get("slotCache")
    if isinstance(block, Mapping):
        given["slotCache"] = {**_STORED_SLOT_CACHE, **{key: value for key, value in block.items() if value is not None}}
    patch = given.pop("settings", None)
    sidecar = record_from_mapping(Sidecar, given)
    if isinstance(patch, Mapping):
        values = {item: getattr(sidecar, item) for item in sidecar.__dataclass_fields__}
        return Sidecar(**{**values, "settings": patch_from_mapping(patch) or None})
    return sidecar


def sidecar_to_mapping(sidecar: Sidecar) -> dict[str, Any]:
    """The YAML form: what is set, sparse."""
    document = record_to_mapping(sidecar)
    if sidecar.slot_cache is not None:
        document["slotCache"] = record_to_mapping(sidecar.slot_cache, sparse=False)
    return document
