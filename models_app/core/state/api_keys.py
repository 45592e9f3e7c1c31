"""API keys of the router's clients, and the key of the built-in playground (state.md 8.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from models_app.core.settings import ApiKey
from models_app.core.state.sidecar import Sidecar

BUILT_IN = "playground (built-in)"
"""Reserved; hidden on pages."""
PREFIX = "qm-"
SECRET_BYTES = 24


def upsert_key(sidecar: Sidecar, key: ApiKey) -> Sidecar:
    """Stores a key in the place of the one of the same name, ignoring case."""
    keys = list(sidecar.api_keys or ())
    for index, current in enumerate(keys):
        if _same(current.name, key.name):
            keys[index] = key
            return replace(sidecar, api_keys=tuple(keys))
    return replace(sidecar, api_keys=(*keys, key))


def delete_key(sidecar: Sidecar, name: str) -> Sidecar:
    return replace(sidecar, api_keys=tuple(key for key in sidecar.api_keys or () if not _same(key.name, name)))


def playground_key_wanted(keys: tuple[ApiKey, ...]) -> bool:
    """The playground needs a key of its own when people have keys and none of theirs opens every model."""
    own = [key for key in keys if not _same(key.name, BUILT_IN)]
    return bool(own) and all(key.models for key in own)


def reconcile_playground_key(sidecar: Sidecar, random_hex: Callable[[int], str]) -> tuple[Sidecar, bool]:
    """Mints or removes the built-in key as needed, and whether something changed.

    `random_hex` gives that many random bytes as hex digits (`secrets.token_hex`).
    """
    keys = sidecar.api_keys or ()
    present = any(_same(key.name, BUILT_IN) for key in keys)
    if playground_key_wanted(keys) == present:
        return sidecar, False
    if present:
        return delete_key(sidecar, BUILT_IN), True
    return upsert_key(sidecar, ApiKey(BUILT_IN, PREFIX + random_hex(SECRET_BYTES))), True


def _same(left: str, right: str) -> bool:
    return left.strip().lower() == right.strip().lower()
