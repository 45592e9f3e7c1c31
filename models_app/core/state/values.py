"""Reads and checks what people type into form controls, by the ranges of the catalogue (web.md W-040, W-042).

Every message names the field and what it accepts. Nothing typed, however odd, raises anything but `FieldError`.
"""

from __future__ import annotations

import math
import re
from typing import Any

from models_app.core.errors import QuartermasterError
from models_app.core.fields.field import CHOICE, INTEGER, INTEGERS, NUMBER, SWITCH, Field

MAX_NUMBER_CHARACTERS = 40
MAX_LIST_CHARACTERS = 2000
DEFAULT_MAX_LENGTH = 4096
KIBI = 1024

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
"""`1,234` may be a thousand or a fraction: it is refused."""
_SWITCHES = {"": None, "auto": None, "on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class FieldError(QuartermasterError):
    """A value that its field does not accept; the text is for the person who typed it."""


def parse_field(field: Field, text: str) -> Any:
    """The value that a control's text means; blank is the field's absence. Raises `FieldError`."""
    stripped = text.strip()
    if field.kind in (INTEGER, NUMBER, INTEGERS, CHOICE, SWITCH) and not stripped:
        return field.absent
    if field.kind == INTEGER:
        value: Any = _parse_integer(field, stripped)
    elif field.kind == NUMBER:
        value = _parse_number(field, stripped)
    elif field.kind == INTEGERS:
        value = _parse_integers(field, stripped)
    elif field.kind == SWITCH:
        value = _parse_switch(field, stripped)
    else:
        value = stripped if field.trimmed else text
    problem = field_problem(field, value)
    if problem:
        raise FieldError(problem)
    return value


def field_problem(field: Field, value: Any) -> str:
    """Why a value is not acceptable, "" when it is. A value that says nothing is always acceptable."""
    if not field.is_set(value):
        return ""
    if field.kind in (INTEGER, NUMBER):
        return _number_problem(field, value)
    if field.kind == INTEGERS:
        return next(filter(None, (_number_problem(field, item) for item in value)), "")
    if isinstance(value, str):
        return _text_problem(field, value)
    return ""


def accepted_range(field: Field) -> str:
    """The range in words: `0.05 to 0.99`, `above 0 GiB`, `32 or more tokens`, "" for any number."""
    unit = f" {field.unit}" if field.unit else ""
    low, high = field.minimum, field.maximum
    if low is not None and field.above_minimum:
        return f"above {_plain(low)}" + (f", up to {_plain(high)}" if high is not None else "") + unit
    if low is not None and high is not None:
        return f"{_plain(low)} to {_plain(high)}{unit}"
    if low is not None:
        return f"{_plain(low)} or more{unit}"
    return f"at most {_plain(high)}{unit}" if high is not None else ""


def _number_problem(field: Field, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return f"{field.label}: give a number."
    if field.kind != NUMBER and value != int(value):
        return f"{field.label}: give a whole number."
    low, high = field.minimum, field.maximum
    too_low = low is not None and (value < low or (field.above_minimum and value == low))
    if too_low or (high is not None and value > high):
        return f"{field.label}: accepted is {accepted_range(field)}."
    if field.multiple_of and value % field.multiple_of:
        return f"{field.label}: give a multiple of {field.multiple_of}."
    return ""


def _text_problem(field: Field, value: str) -> str:
    if field.choices and value.strip().lower() not in field.choices:
        return f"{field.label}: choose one of {', '.join(field.choices)}, or leave it blank."
    limit = field.max_length or DEFAULT_MAX_LENGTH
    if len(value) > limit:
        return f"{field.label}: at most {limit:,} characters."
    if "\x00" in value:
        return f"{field.label}: the text holds a NUL character."
    return ""


def _parse_integer(field: Field, text: str) -> int:
    factor = KIBI if field.unit == "tokens" and text[-1:] in ("k", "K") else 1
    digits = text[:-1].rstrip() if factor > 1 else text
    if len(digits) > MAX_NUMBER_CHARACTERS or not _INTEGER.fullmatch(digits):
        hint = ", for example 32768 or 32k" if field.unit == "tokens" else ""
        raise FieldError(f"{field.label}: give a whole number{hint}.")
    value = int(digits) * factor
    if abs(value) > 2**62:
        raise FieldError(f"{field.label}: the number is too large.")
    return value


def _parse_number(field: Field, text: str) -> float:
    if len(text) > MAX_NUMBER_CHARACTERS or not _NUMBER.fullmatch(text) or text.strip("+-") in (".", ","):
        raise FieldError(f"{field.label}: give a number, for example 0.5.")
    if _GROUPED.fullmatch(text):
        raise FieldError(f"{field.label}: {text} can be read in two ways; write it with a point, or without the comma.")
    return float(text.replace(",", "."))


def _parse_integers(field: Field, text: str) -> tuple[int, ...]:
    if len(text) > MAX_LIST_CHARACTERS:
        raise FieldError(f"{field.label}: at most {MAX_LIST_CHARACTERS:,} characters.")
    parts = [part for part in re.split(r"[\s,;]+", text) if part]
    return tuple(dict.fromkeys(_parse_integer(field, part) for part in parts))


def _parse_switch(field: Field, text: str) -> bool | None:
    if text.lower() not in _SWITCHES:
        raise FieldError(f"{field.label}: choose on, off or automatic.")
    value = _SWITCHES[text.lower()]
    return False if value is None and not field.nullable else value


def _plain(number: float) -> str:
    return f"{number:,.10g}"
