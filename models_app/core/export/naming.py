"""Public names of served ids (config-yaml.md 6.5)."""

from __future__ import annotations

from collections.abc import Mapping


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
