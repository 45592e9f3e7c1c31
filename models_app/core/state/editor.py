"""What a save of a model's form stores (state.md 7): the form over the file's row, nothing void left behind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from models_app.core.discovery.inventory import PROJECTOR_ARCHITECTURE
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.launch.ownership import clear_owned_by_text
from models_app.core.launch.tokens import POSIX
from models_app.core.settings import Override, Variant, override_from_mapping
from models_app.core.state.overrides import normalise_none

FILE_ONLY = frozenset({"match", "quant"})
"""Fields that no form has; they survive from the row it starts from."""


def editor_save(
    file_row: Override | None,
    path: str,
    body: Mapping[str, Any],
    *,
    form_keys: Collection[str] | None = None,
    is_moe: bool | None = None,
    rules: str = POSIX,
) -> Override:
    """The row to store for a model. The form is authoritative for all fields that it has, the variant list included.

    `file_row` is the resolved row of the generate file, never the stored one: a field that is blank now must be blank.
    `form_keys` names the fields of the form where it does not have all; the others are kept.
    """
    form = override_from_mapping(body)
    values: dict[str, Any] = {}
    for field in OVERRIDE_FIELDS:
        if field.key in FILE_ONLY or (form_keys is not None and field.key not in form_keys):
            continue
        value = getattr(form, field.attribute)
        values[field.attribute] = value.strip() if field.trimmed and isinstance(value, str) else value
    row = replace(file_row or Override(), **values)
    row = replace(row, match=path)
    return clear_owned_by_text(normalise_none(row), rules, is_moe=is_moe)


def projector_file_problem(exists: bool, is_folder: bool, architecture: str) -> str:
    """Why a file cannot be a model's projector, "" when it can. `architecture` is that of its header."""
    if not exists:
        return "There is no such file on the host."
    if is_folder:
        return "This is a folder: give the projector file itself."
    if architecture != PROJECTOR_ARCHITECTURE:
        return (
            f"This is not a projector: its architecture is {architecture or 'unknown'}, not {PROJECTOR_ARCHITECTURE}."
        )
    return ""


def put_variant(row: Override, variant: Variant) -> Override:
    """The row with one variant added, or replaced by name, ignoring case."""
    name = variant.name.strip().lower()
    variants = [variant if current.name.strip().lower() == name else current for current in row.variants]
    if variant not in variants:
        variants.append(variant)
    return replace(row, variants=tuple(variants))


def delete_variant(row: Override, name: str) -> Override:
    return replace(row, variants=_without(row.variants, name))


def _without(variants: Iterable[Variant], name: str) -> tuple[Variant, ...]:
    return tuple(variant for variant in variants if variant.name.strip().lower() != name.strip().lower())
