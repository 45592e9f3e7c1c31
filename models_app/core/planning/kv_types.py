"""Types of the KV cache: their sizes, and which pairs a launch may name (sizing.md 3.1 and 4)."""

from __future__ import annotations

from typing import NamedTuple

from models_app.core.fields import KV_TYPES

LAUNCHABLE_TYPES = KV_TYPES
"""What `-ctk` and `-ctv` may say. `iq4_nl` has no flash-attention kernel."""

QUANTISED_TYPES = frozenset({"q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"})
"""Types whose V cache needs flash attention."""

_ELEMENT_BYTES = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}


class KvPair(NamedTuple):
    """The types of K and V; a launch needs them equal."""

    k: str
    v: str


def element_bytes(kv_type: str) -> float:
    """Bytes per cached element; an unknown type counts as q8_0."""
    return _ELEMENT_BYTES.get(kv_type, 34 / 32)


def valid_kv_pair(k: str, v: str) -> bool:
    """May this pair be emitted? K must equal V, and the type must be one a server can run."""
    return k == v and k in LAUNCHABLE_TYPES


def resolve_kv_pair(k: str, v: str, default: str) -> KvPair:
    """A blank side mirrors the other; both blank, a mixed or an unusable pair become the default."""
    first, second = k or v, v or k
    return KvPair(first, second) if valid_kv_pair(first, second) else KvPair(default, default)
