"""Checks of values that came in as JSON: each gives the value back with its type, or raises RecordError."""

from __future__ import annotations

import math
from typing import Any

from models_app.core.errors import RecordError
from models_app.core.readers import limits


def mapping(value: object, name: str, limit: int) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > limit:
        raise RecordError(f"{name} is no object, or one with too many members")
    return value


def listing(value: object, name: str, limit: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > limit:
        raise RecordError(f"{name} is no list, or too long")
    return value


def text(value: object, name: str) -> str:
    if not isinstance(value, str) or len(value) > limits.MAX_STRING_BYTES:
        raise RecordError(f"{name} is no text, or too long")
    return value


def integer(value: object, name: str) -> int:
    if type(value) is not int or not -limits.MAX_INTEGER - 1 <= value <= limits.MAX_INTEGER:
        raise RecordError(f"{name} is no whole number of 64 bits")
    return value


def count(value: object, name: str) -> int:
    number = integer(value, name)
    if number < 0:
        raise RecordError(f"{name} is negative")
    return number


def number(value: object, name: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise RecordError(f"{name} is no finite number")
    return float(value)  # type: ignore[arg-type]


def flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise RecordError(f"{name} is neither true nor false")
    return value
