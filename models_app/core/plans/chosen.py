"""What the planner chooses for the fields that a person may pin, read from its own plans.

Pages show these values beside empty fields; a save leaves out a pin that equals them (web.md W-004).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from models_app.core.catalog import Plan
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.fields.field import CHOICE, INTEGER, NUMBER, TEXT, Field
from models_app.core.launch.flag_table import read_words
from models_app.core.launch.locks import table_of
from models_app.core.launch.pins import pins_of
from models_app.core.settings import Override, Settings

Planned = Callable[[Override], Sequence[Plan]]
"""All plans of one row under an override, the base first."""

READABLE = {
    field.knobs[0]: field
    for field in OVERRIDE_FIELDS
    if field.knobs == (field.key,) and field.kind in (INTEGER, NUMBER, TEXT, CHOICE)
}
"""Knob -> the field that it alone stands for: the value of its flag is the value of the field."""


def chosen_values(plan: Plan, settings: Settings) -> dict[str, Any]:
    """Key -> value that a plan runs with, typed like the field. Keys of which the plan says nothing are left out."""
    if not plan.tokens:
        return {}
    values = {**_flags(plan.argv, plan.engine or "llama"), "ttlSec": settings.ttl_sec}
    placement = plan.placement
    if placement is not None:
        values |= {
            **_switches(plan, settings),
            "ctx": placement.ctx_tokens,
            "parallel": placement.slots,
            "kvK": placement.type_k,
            "kvV": placement.type_v,
        }
    if plan.target_bytes:
        values["vramTargetGB"] = plan.target_bytes / (1 << 30)
    return values


def _flags(argv: Sequence[str], engine: str) -> dict[str, Any]:
    """Values of the flags of a command, by key; a flag that stands twice counts the last time."""
    table = table_of(engine)
    if table is None:
        return {}
    values: dict[str, Any] = {}
    words = read_words(table, argv)
    for word, after in pairwise(words):
        field = READABLE.get(word.row.knob) if word.row is not None and not word.is_value else None
        if field is not None and after.is_value and (value := typed_value(field, after.text)) is not None:
            values[field.key] = value
    chain = pins_of(list(argv)).spec if engine == "llama" else ""
    return {**values, "spec": chain} if chain else values


def typed_value(field: Field, text: str) -> Any:
    """The value of a flag as its field has it, None for a text that is no number where one is wanted."""
    if field.kind not in (INTEGER, NUMBER):
        return text
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if field.kind == INTEGER else number


def _switches(plan: Plan, settings: Settings) -> dict[str, Any]:
    """Switches with a default of their own; the others are off when nobody sets them."""
    return {
        "dry": settings.dry_default,
        "preserveThinking": "--reasoning-preserve" in plan.argv,
        "slotCache": False,
        "slotCachePreamble": True,
    }


def without_chosen(override: Override, keys: Collection[str], planned: Planned, settings: Settings) -> Override:
    """The override without those of its fields `keys` that the planner would choose anyway, the others being as given.

    A field goes only where every command stays the same, token by token: a tier or a variant may depend on it.
    """
    commands = None
    for field in OVERRIDE_FIELDS:
        value = getattr(override, field.attribute)
        if field.key not in keys or not field.is_set(value):
            continue
        absent: dict[str, Any] = {field.attribute: field.absent}
        shorter = replace(override, **absent)
        plans = planned(shorter)
        if not plans or not _same(chosen_values(plans[0], settings).get(field.key), value):
            continue
        commands = commands or _commands(planned(override))
        if _commands(plans) == commands:
            override = shorter
    return override


def _same(chosen: Any, value: Any) -> bool:
    if isinstance(chosen, float) and isinstance(value, int | float):
        return abs(chosen - value) < 0.005
    return bool(chosen == value)


def _commands(plans: Sequence[Plan]) -> list[tuple[Any, ...]]:
    return [(plan.profile_id, plan.lines, plan.est_vram_bytes, plan.est_ram_bytes) for plan in plans]
