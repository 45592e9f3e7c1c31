"""From the generate file and the sidecar to effective settings (state.md 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models_app.core.errors import SettingsError
from models_app.core.fields import DEFAULT_CTX_LADDER, KV_TYPES, OLD_CTX_LADDER, PATCH_FIELDS, SETTINGS_FIELDS
from models_app.core.launch.backends import SIBLINGS, sibling
from models_app.core.settings import Override, Settings, override_from_mapping, settings_from_mapping
from models_app.core.settings.codec import key_of
from models_app.core.state.extra_models import merge_extra_models
from models_app.core.state.overrides import merge_overrides
from models_app.core.state.patch import patch_from_mapping
from models_app.core.state.sidecar import Sidecar

Document = Mapping[str, Any]

EXECUTABLE_KEYS = ("serverExe", "sdServerExe", "ttsServerExe", "asrServerExe")
SHARED_MEMORY = ("auto", "on", "off")
_SLOT_CACHE_DEFAULTED = ("minSaveTokens", "maxDiskGB", "maxSessions")


@dataclass(frozen=True, slots=True)
class Measured:
    """Budgets that a probe found, in GiB; 0 is no reading."""

    vram_gb: float = 0.0
    ram_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadedState:
    """What planning starts from: effective settings and every override row in the order of resolution."""

    settings: Settings
    overrides: tuple[Override, ...]


def load_state(
    document: Document,
    sidecar: Sidecar,
    *,
    models_dir: str = "",
    measured: Measured | None = None,
    rows: Sequence[Override] | None = None,
) -> LoadedState:
    """The whole load sequence. `document` is the parsed generate file: `settings` and `overrides`.

    `rows` are its overrides where somebody has read them already.
    """
    file_rows = _file_rows(document) if rows is None else rows
    own = {} if document.get("settings") is None else document["settings"]
    settings = load_settings(own, sidecar, models_dir=models_dir, measured=measured)
    return LoadedState(settings, merge_overrides(sidecar.overrides, file_rows))


def _file_rows(document: Document) -> list[Override]:
    rows = [] if document.get("overrides") is None else document["overrides"]
    if not isinstance(rows, list):
        raise SettingsError("overrides: expected a list")
    return [override_from_mapping(row) for row in rows]


def load_settings(
    document: Document, sidecar: Sidecar, *, models_dir: str = "", measured: Measured | None = None
) -> Settings:
    """Effective settings from the `settings` map of the generate file and the sidecar."""
    if not isinstance(document, Mapping):
        raise SettingsError("settings: expected a map")
    merged = dict(document)
    # Before the defaults: sibling executables follow the llama path that the UI set.
    merged.update({key: path for key, path in (sidecar.backends or {}).items() if path.strip()})
    settings = apply_defaults(merged)
    if sidecar.backend_list:
        settings = replace(settings, backends=sidecar.backend_list)
    patch = sidecar.settings or {}
    settings = migrate_ladder(overlay_patch(settings, patch))
    settings = _with_measured(settings, document, patch, measured)
    settings = _with_lists(settings, sidecar)
    return replace(settings, models_root=models_dir) if models_dir.strip() else settings


def base_settings(document: Document, models_dir: str = "") -> Settings:
    """What a reset shows: the file with its defaults, without the sidecar."""
    return load_settings(document, Sidecar(), models_dir=models_dir)


def apply_defaults(document: Document) -> Settings:
    """Settings of a file: zeros that stand for "not set" and unknown choices take their defaults."""
    given = {key: value for key, value in document.items() if value is not None}
    for field in SETTINGS_FIELDS:
        if field.file_zero is not None and given.get(field.key) == 0:
            del given[field.key]
    if isinstance(given.get("slotCache"), Mapping):
        given["slotCache"] = {
            key: value for key, value in given["slotCache"].items() if not (key in _SLOT_CACHE_DEFAULTED and value == 0)
        }
    for attribute, name in SIBLINGS.items():
        key = key_of(attribute)
        if not str(given.get(key) or "").strip():
            given[key] = sibling(str(given.get("serverExe") or ""), name)
    if not str(given.get("serverExe") or "").strip():
        given.pop("serverExe", None)
    return migrate_ladder(normalise(settings_from_mapping(given)))


def normalise(settings: Settings) -> Settings:
    """Negative opt-outs become 0, and choices that nobody knows become their default."""
    shared = settings.shared_memory.strip().lower()
    kv_type = settings.kv_quant.strip().lower()
    return replace(
        settings,
        min_gpu_fraction=max(0.0, settings.min_gpu_fraction),
        oom_guard_reserve_gb=max(0.0, settings.oom_guard_reserve_gb),
        shared_memory=shared if shared in SHARED_MEMORY else SHARED_MEMORY[0],
        kv_quant=kv_type if kv_type in KV_TYPES else "",
    )


def migrate_ladder(settings: Settings) -> Settings:
    """An empty ladder, or exactly the one once shipped as the default, becomes the default."""
    if settings.dense_ctx_ladder and settings.dense_ctx_ladder != OLD_CTX_LADDER:
        return settings
    return replace(settings, dense_ctx_ladder=DEFAULT_CTX_LADDER)


def overlay_patch(settings: Settings, patch: Document) -> Settings:
    """The patch over settings that have their defaults: a stored 0 stays 0."""
    values = patch_from_mapping(patch)
    typed = settings_from_mapping(values)
    attributes = {field.attribute: getattr(typed, field.attribute) for field in PATCH_FIELDS if field.key in values}
    return normalise(replace(settings, **attributes))


def _with_measured(settings: Settings, document: Document, patch: Document, measured: Measured | None) -> Settings:
    """Measured budgets where neither the file nor the patch set one."""
    if measured is None:
        return settings
    values: dict[str, float] = {}
    for key, attribute, reading in (
        ("targetVramGB", "target_vram_gb", measured.vram_gb),
        ("maxRamGB", "max_ram_gb", measured.ram_gb),
    ):
        if not document.get(key) and patch.get(key) is None and reading > 0:
            values[attribute] = reading
    return replace(settings, **values)  # type: ignore[arg-type]


def _with_lists(settings: Settings, sidecar: Sidecar) -> Settings:
    """Lists of the sidecar replace the file's, maps are laid over it key by key."""
    values: dict[str, Any] = {
        "display_names": {**settings.display_names, **sidecar.display_names},
        "category_roots": {**settings.category_roots, **sidecar.category_roots},
        "extra_image_models": merge_extra_models(
            settings.extra_image_models, sidecar.extra_image_models, sidecar.removed_extra_image_models
        ),
    }
    for name in ("default_variants", "api_keys", "prompt_enhancers", "slot_cache"):
        own = getattr(sidecar, name)
        if own is not None:
            values[name] = own
    return replace(settings, **values)


__all__ = [
    "EXECUTABLE_KEYS",
    "LoadedState",
    "Measured",
    "apply_defaults",
    "base_settings",
    "load_settings",
    "load_state",
    "migrate_ladder",
    "normalise",
    "overlay_patch",
]
