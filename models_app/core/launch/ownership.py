"""Which knobs a person's text owns, and the stored fields behind them (launch.md 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from models_app.core.errors import LaunchError
from models_app.core.fields import MODEL_FIELDS, OVERRIDE_FIELDS, Field
from models_app.core.launch.flag_table import FlagTable, Word, read_words
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import POSIX, command_lines, split_command
from models_app.core.settings import Override, SharedFields, Variant

TABLES = (LLAMA, SD)

_MOE_KNOBS = {"ngl": False, "nCpuMoe": True}
"""Both place the same field: layers of a dense model, experts of a MoE. Which of them counts depends on the header."""


def owned_knobs(table: FlagTable, tokens: Iterable[str]) -> frozenset[str]:
    """Knobs of the known flags in `tokens`. Additive flags and unknown ones own nothing."""
    return owned_by(read_words(table, tokens))


def owned_by(words: Iterable[Word]) -> frozenset[str]:
    return frozenset(
        word.row.knob for word in words if word.row is not None and not word.is_value and not word.row.additive
    )


def custom_text(override: Override | None) -> str:
    """The text that applies: nothing when it is switched off, else the custom arguments, else the legacy ones."""
    if override is None or override.custom_args_off:
        return ""
    return text_of(override)


def runs_text_only(override: Override | None) -> bool:
    """Whether the text is the whole command."""
    return override is not None and override.custom_args_only and bool(command_lines(custom_text(override)))


def text_of(layer: SharedFields) -> str:
    """The launch text of an override or a variant, whatever its switch says."""
    return layer.custom_args if layer.custom_args.strip() else layer.extra_args


def knobs_set(layer: SharedFields) -> frozenset[str]:
    """Knobs of the fields that an override or a variant sets."""
    fields = (field for field in MODEL_FIELDS if field.is_set(getattr(layer, field.attribute, None)))
    return frozenset(knob for field in fields for knob in field.knobs)


def fields_behind(knob: str, is_moe: bool | None = None) -> tuple[Field, ...]:
    """The catalogue fields that a flag of `knob` makes void. `is_moe` is None where the header is not known."""
    if knob in _MOE_KNOBS and is_moe is not _MOE_KNOBS[knob]:
        return ()
    return tuple(field for field in OVERRIDE_FIELDS if knob in field.knobs)


def clear_owned(
    override: Override, owned: Iterable[str], *, is_moe: bool | None = None
) -> tuple[Override, tuple[str, ...]]:
    """The override without the fields behind `owned`, and the knobs that have such fields, in table order."""
    wanted = set(owned)
    cleared: list[str] = []
    values: dict[str, Any] = {}
    for knob in dict.fromkeys(knob for table in TABLES for knob in table.knobs):
        behind = fields_behind(knob, is_moe) if knob in wanted else ()
        if behind:
            cleared.append(knob)
            values.update({field.attribute: field.absent for field in behind})
    return (replace(override, **values) if values else override), tuple(cleared)


def clear_owned_by_text(override: Override, rules: str = POSIX, *, is_moe: bool | None = None) -> Override:
    """What a save does: the union of what both tables say about the text; a broken or disabled text clears nothing.

    A variant's own text clears the variant's fields in the same way.
    """
    owned = _owned_by_text(custom_text(override), rules)
    cleared, _ = clear_owned(override, owned, is_moe=is_moe)
    variants = tuple(_clear_variant(variant, rules, is_moe) for variant in cleared.variants)
    return replace(cleared, variants=variants) if variants != cleared.variants else cleared


def _clear_variant(variant: Variant, rules: str, is_moe: bool | None) -> Variant:
    values: dict[str, Any] = {}
    for knob in _owned_by_text(text_of(variant), rules):
        for field in fields_behind(knob, is_moe):
            if field.on_variant:
                values[field.attribute] = field.absent
    return replace(variant, **values) if values else variant


def _owned_by_text(text: str, rules: str) -> frozenset[str]:
    try:
        tokens = split_command(text, rules)
    except LaunchError:
        return frozenset()
    return owned_knobs(LLAMA, tokens) | owned_knobs(SD, tokens)
