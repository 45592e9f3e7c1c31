"""Suffixes and public names of served ids (config-yaml.md 6.2, 6.5)."""

from __future__ import annotations

from collections.abc import Mapping


def ctx_tag(ctx_tokens: int) -> str:
    """The suffix of a context tier: `4096` -> `4k`, `1048576` -> `1m`, `5000` -> `5000`."""
    for size, letter in ((1 << 20, "m"), (1 << 10, "k")):
        if ctx_tokens >= size and ctx_tokens % size == 0:
            return f"{ctx_tokens // size}{letter}"
    return str(ctx_tokens)


def public_name(display_names: Mapping[str, str], served_id: str) -> str:
    """The name a renamed model is advertised under, "" when it keeps its id.

    The longest renamed base wins; what follows it in the id stays.
    """
    bases = [
        base
        for base, name in display_names.items()
        if name.strip() and (served_id == base or served_id.startswith(f"{base}-"))
    ]
    if not bases:
        return ""
    base = max(bases, key=len)
    name = display_names[base].strip() + served_id[len(base) :]
    return "" if name == served_id else name
