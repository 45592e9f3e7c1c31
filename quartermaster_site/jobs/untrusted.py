"""Bounded reading of JSON that a host sent. Everything that is not as agreed raises `ReportRefused`."""

from __future__ import annotations

from typing import Any

from gpus_app.core.errors import QuartermasterError

MAX_INT = 1 << 62


class ReportRefused(QuartermasterError):
    """A report that cannot be believed; it is logged and dropped."""


def mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ReportRefused(f"{name} is not an object")
    return value


def items(value: Any, name: str, limit: int) -> list[Any]:
    """A list of at most `limit` entries."""
    if not isinstance(value, list):
        raise ReportRefused(f"{name} is not a list")
    if len(value) > limit:
        raise ReportRefused(f"{name} has {len(value)} entries, at most {limit} are taken")
    return value


def text(value: Any, name: str, limit: int) -> str:
    """Text without NUL and lone surrogates (no database keeps those), cut to `limit` characters."""
    if not isinstance(value, str):
        raise ReportRefused(f"{name} is not text")
    return storable(value[:limit])


def storable(value: str) -> str:
    """Text without NUL and lone surrogates."""
    return value.replace("\x00", "�").encode("utf-8", "replace").decode("utf-8")


def path(value: Any, name: str) -> str:
    """A path is a key: one that is too long is refused, not cut."""
    if isinstance(value, str) and len(value) > 1024:
        raise ReportRefused(f"{name} is longer than 1,024 characters")
    return text(value, name, 1024)


def integer(value: Any, name: str, low: int = 0, high: int = MAX_INT) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ReportRefused(f"{name} is not a whole number from {low} to {high}")
    return value


def optional_integer(value: Any, name: str, low: int = 0, high: int = MAX_INT) -> int | None:
    return None if value is None else integer(value, name, low, high)


def number(value: Any, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ReportRefused(f"{name} is not a number from {low} to {high}")
    return float(value)


def boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ReportRefused(f"{name} is neither true nor false")
    return value
