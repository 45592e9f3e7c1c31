"""Between the texts of a form's controls and the values of an override, both ways.

A form posts one text per field. `read` gives values or messages; `control_text` is its inverse. What a person typed is
quoted in the message, and nothing typed, however odd, raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from models_app.core.fields import Field
from models_app.core.fields.field import CHOICE, INTEGER, INTEGERS, MODEL, NUMBER, PATH, RECORDS, SWITCH, TEXT
from models_app.core.state.checks import Limits, beyond_trained, bounded, joint_problems
from models_app.core.state.values import FieldError, accepted_range, parse_field

MOST_QUOTED = 40
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+")
_SCALE = re.compile(r"\s+:\s+([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))\s*$")
_MOST_ADAPTERS = 32


@dataclass(frozen=True, slots=True)
class Reading:
    """A form that was read: values by key where they are acceptable, messages by key where not."""

    values: dict[str, Any]
    errors: dict[str, str]


def read(fields: Iterable[Field], typed: Mapping[str, str], limits: Limits) -> Reading:
    """The values of a form with these fields. A field of which nothing was sent is absent."""
    limits = replace(limits, rope_scaling=typed.get("ropeScaling", "") or limits.rope_scaling)
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field in fields:
        try:
            values[field.key] = _value(bounded(field, limits), typed.get(field.key, ""))
        except FieldError as error:
            errors[field.key] = _message(field, str(error), typed.get(field.key, ""), limits)
    errors = {**joint_problems(values, limits), **errors}
    return Reading({key: value for key, value in values.items() if key not in errors}, errors)


def _value(field: Field, text: str) -> Any:
    if field.kind == RECORDS:
        return _adapters(field, text)
    if field.kind == INTEGER and _GROUPED.fullmatch(text.strip()):
        text = text.replace(",", "")
    if field.kind in (TEXT, PATH, MODEL) and not text.strip().isprintable():
        raise FieldError(f"{field.label}: give one line without tabs or other control characters.")
    value = parse_field(field, text)
    return value.lower() if field.kind == CHOICE and isinstance(value, str) else value


def _message(field: Field, problem: str, text: str, limits: Limits) -> str:
    """The problem, the range where it does not say one, what to do, and what was typed."""
    ways = problem
    if field.limit == "trained-length" and "accepted is" in problem and limits.trained_tokens:
        ways = f"{problem} {beyond_trained(limits)}"
    elif field.kind in (INTEGER, NUMBER) and "accepted is" not in problem:
        span = accepted_range(bounded(field, limits))
        ways = f"{problem} Accepted is {span}." if span else problem
    if field.kind in (INTEGER, NUMBER, INTEGERS):
        ways += " Leave it blank for automatic."
    shown = text.strip()
    quoted = shown if len(shown) <= MOST_QUOTED else shown[:MOST_QUOTED] + "…"
    return f"{ways} You typed “{quoted}”." if quoted else ways


def _adapters(field: Field, text: str) -> list[dict[str, Any]]:
    """One adapter a line: its file, then ` : ` and a scale where it has one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > _MOST_ADAPTERS or any(len(line) > 1100 for line in lines):
        raise FieldError(f"{field.label}: at most {_MOST_ADAPTERS} lines of a path each.")
    if any("\x00" in line for line in lines):
        raise FieldError(f"{field.label}: the text holds a NUL character.")
    return [_adapter(line) for line in lines]


def _adapter(line: str) -> dict[str, Any]:
    scale = _SCALE.search(line)
    if scale is None:
        return {"path": line}
    return {"path": line[: scale.start()], "scale": float(scale[1])}


def control_text(field: Field, value: Any) -> str:
    """What a control holds for a stored value; blank where it says nothing."""
    if not field.is_set(value):
        return ""
    if field.kind == SWITCH:
        return "on" if value else "off"
    if field.kind == RECORDS:
        return "\n".join(_adapter_line(item) for item in value)
    if field.kind == INTEGERS:
        return ", ".join(str(item) for item in value)
    return shown_number(value) if isinstance(value, float) else str(value)


def shown_number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def _adapter_line(item: Mapping[str, Any]) -> str:
    scale = item.get("scale")
    return str(item.get("path", "")) if scale is None else f"{item.get('path', '')} : {shown_number(scale)}"
