"""The field catalogue: every field of the settings, of an override and of a variant, as data.

Forms, previews, import, export, validation and the documentation read it. Adding a field is one row here and one
attribute on its value type in `models_app.core.settings`.
"""

from models_app.core.fields.choices import CATEGORIES, KV_TYPES
from models_app.core.fields.field import Field, attribute_of
from models_app.core.fields.fleet import DEFAULT_CTX_LADDER, OLD_CTX_LADDER, PATCH_FIELDS, SETTINGS_FIELDS
from models_app.core.fields.model import MODEL_FIELDS, OVERRIDE_FIELDS, SENTINEL_FIELDS, VARIANT_FIELDS

__all__ = [
    "CATEGORIES",
    "DEFAULT_CTX_LADDER",
    "KV_TYPES",
    "MODEL_FIELDS",
    "OLD_CTX_LADDER",
    "OVERRIDE_FIELDS",
    "PATCH_FIELDS",
    "SENTINEL_FIELDS",
    "SETTINGS_FIELDS",
    "VARIANT_FIELDS",
    "Field",
    "attribute_of",
]
