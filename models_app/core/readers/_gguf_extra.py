"""The map `extra` of a record: whatever else is small, for the sizers and the model page (headers.md 5.3)."""

from __future__ import annotations

import math

from models_app.core.catalog import Scalar
from models_app.core.readers import limits
from models_app.core.readers._gguf_facts import CONSUMED, CONSUMED_WHOLE, TOKENS, Facts
from models_app.core.readers._gguf_keys import BOOL, ArrayValue, Value


def extra_facts(facts: Facts) -> dict[str, Scalar | tuple[Scalar, ...]]:
    """Everything else that is small, own keys first and without their prefix. Arrays of consumed keys stay whole."""
    extra: dict[str, Scalar | tuple[Scalar, ...]] = {}
    prefix = facts.prefix.encode()
    for own in (True, False):
        consumed = CONSUMED if own else CONSUMED_WHOLE
        for raw_key, value in facts.keys.values.items():
            if own != bool(prefix and raw_key.startswith(prefix)):
                continue
            name = raw_key[len(prefix) if own else 0 :].decode("utf-8", "replace")
            plain = _plain(name, value)
            if plain is None or (name in consumed and not isinstance(value, ArrayValue)):
                continue
            if len(extra) >= limits.MAX_EXTRA_ENTRIES:
                facts.keys.warn("the header holds very many keys; only the first of them are kept")
                return extra
            extra.setdefault(name, plain)
    return extra


def _plain(name: str, value: Value) -> Scalar | tuple[Scalar, ...] | None:
    """A value as a record may hold it: finite, within 64 signed bits, no raw strings."""
    if isinstance(value, ArrayValue):
        if name == TOKENS:
            return value.length
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
