"""A variant merged over its model's override, by the inherit rules of the field catalogue (state.md 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from models_app.core.fields import VARIANT_FIELDS, Field
from models_app.core.fields.field import GIVEN_WINS, KV_PAIR, MODEL_ONLY, OWN, SENTINEL, SET_WINS
from models_app.core.launch.ownership import text_of
from models_app.core.settings import Override, Variant
from models_app.core.state.overrides import is_none

VISION = "vision"
"""A variant of this name (any case) tunes the vision twin instead of making a profile."""


def inherit_text(variant: str, model: str) -> str:
    """Blank inherits, `none` is nothing, anything else is the value as typed."""
    if not variant.strip():
        return model
    return "" if is_none(variant) else variant


def merge_variant(override: Override, variant: Variant) -> Override:
    """The effective override of a named variant of a text model.

    `kv_k` and `kv_v` are one pair: the variant's when it names one side, else the model's; the sizer resolves it.
    """
    values = {field.attribute: _merged(field, field.inherit, override, variant) for field in _MERGED}
    if variant.kv_k.strip() or variant.kv_v.strip():
        values |= {"kv_k": variant.kv_k, "kv_v": variant.kv_v}
    return replace(override, **values, custom_args_only=_is_whole_command(override, variant))


def merge_image_variant(override: Override, variant: Variant) -> Override:
    """The effective override of a variant of an image or video model: an entry of its own, without variants."""
    values = {field.attribute: _merged(field, field.image_inherit, override, variant) for field in _IMAGE_MERGED}
    return replace(override, **values, custom_args_only=_is_whole_command(override, variant), variants=())


def _is_whole_command(override: Override, variant: Variant) -> bool:
    """Whether a text is the whole command is said with it: by the layer that it comes from."""
    return (variant if text_of(variant).strip() else override).custom_args_only


def named_variants(own: tuple[Variant, ...], fleet: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """Variants that make a profile: the model's, then the fleet's; blank names and the vision twin's are left out.

    A fleet variant gives way to the model's own of the same name, ignoring case.
    """
    seen: set[str] = set()
    kept = []
    for variant in (*own, *fleet):
        name = variant.name.strip().lower()
        if name and name != VISION and name not in seen:
            seen.add(name)
            kept.append(variant)
    return tuple(kept)


def vision_variant(own: tuple[Variant, ...], fleet: tuple[Variant, ...] = ()) -> Variant | None:
    """The variant that tunes the vision twin, the model's before the fleet's."""
    return next((variant for variant in (*own, *fleet) if variant.name.strip().lower() == VISION), None)


_APART = ("customArgsOnly",)
_MERGED = tuple(
    field
    for field in VARIANT_FIELDS
    if field.on_override and field.inherit not in (MODEL_ONLY, KV_PAIR) and field.key not in _APART
)
_IMAGE_MERGED = tuple(
    field
    for field in VARIANT_FIELDS
    if field.on_override and field.image_inherit != MODEL_ONLY and field.key not in _APART
)


def _merged(field: Field, rule: str, override: Override, variant: Variant) -> Any:
    model_value, value = getattr(override, field.attribute), getattr(variant, field.attribute)
    if rule == OWN:
        return value
    if rule == SENTINEL:
        return inherit_text(value, model_value)
    if rule == GIVEN_WINS:
        return model_value if value is None else value
    if rule == SET_WINS:
        return value if _says_something(value) else model_value
    raise ValueError(f"{field.key}: no inherit rule {rule}")


def _says_something(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else bool(value)
