"""The map `extra` of a record: whatever else is small, for the sizers and the model page (headers.md 5.3)."""

from __future__ import annotations

import math

from models_app.core.catalog import Scalar
from models_app.core.readers import limits
from models_app.core.readers._gguf_facts import CONSUMED, CONSUMED_WHOLE, TOKENS, Facts
from models_app.core.readers._gguf_keys import BOOL, ArrayValue, Value


def extra_facts(facts: Facts) -> dict[str, Scalar | tuple[Scalar, ...]]:
    """Everything else that is small, own keys first and without their prefix. Arrays of consumed keys stay whole."""
    own: dict[str, Scalar | tuple[Scalar, ...]] = {}
    other: dict[str, Scalar | tuple[Scalar, ...]] = {}
    for raw_key, value in facts.keys.values.items():
        key = raw_key.decode("utf-8", "replace")
        is_own = bool(facts.prefix) and key.startswith(facts.prefix)
        name = key[len(facts.prefix) :] if is_own else key
        consumed = CONSUMED if is_own else CONSUMED_WHOLE
        if name in consumed and not isinstance(value, ArrayValue):
            continue
        plain = value.length if key == TOKENS and isinstance(value, ArrayValue) else _plain(value)
        if plain is not None:
            (own if is_own else other)[name] = plain
    if len(own) + len(other) > limits.MAX_EXTRA_ENTRIES:
        facts.keys.warn("the header holds very many keys; only the first of them are kept")
    merged = list(own.items()) + [item for item in other.items() if item[0] not in own]
    return dict(merged[: limits.MAX_EXTRA_ENTRIES])


def _plain(value: Value) -> Scalar | tuple[Scalar, ...] | None:
    """A value as a record may hold it: finite, within 64 signed bits, no raw strings."""
    if isinstance(value, ArrayValue):
        if not value.elements or not all(_fits(element) for element in value.elements):
            return None
        return tuple(bool(element) for element in value.elements) if value.type_id == BOOL else value.elements
    if isinstance(value, bytes):
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if _fits(value) else None


def _fits(value: int) -> bool:
    return -limits.MAX_INTEGER - 1 <= value <= limits.MAX_INTEGER
