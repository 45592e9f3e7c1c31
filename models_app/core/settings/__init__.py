"""The value types of a host's settings and of what people pinned, and their YAML form (state.md 3 to 6)."""

from models_app.core.settings.codec import (
    override_from_mapping,
    record_from_mapping,
    record_to_mapping,
    settings_from_mapping,
    unknown_keys,
    variant_from_mapping,
)
from models_app.core.settings.fleet import Settings
from models_app.core.settings.overrides import Override, SharedFields, Variant
from models_app.core.settings.records import (
    ApiKey,
    AppSettings,
    BackendEntry,
    BackendSource,
    Encoders,
    ExtraImageModel,
    GroupSpec,
    LoraRef,
    PromptEnhancer,
    SlotCache,
    SourceExtra,
    SourceVariant,
)

__all__ = [
    "ApiKey",
    "AppSettings",
    "BackendEntry",
    "BackendSource",
    "Encoders",
    "ExtraImageModel",
    "GroupSpec",
    "LoraRef",
    "Override",
    "PromptEnhancer",
    "Settings",
    "SharedFields",
    "SlotCache",
    "SourceExtra",
    "SourceVariant",
    "Variant",
    "override_from_mapping",
    "record_from_mapping",
    "record_to_mapping",
    "settings_from_mapping",
    "unknown_keys",
    "variant_from_mapping",
]
