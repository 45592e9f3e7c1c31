"""Input fields of a vector, taken out by name."""

from __future__ import annotations

from typing import Any


def take(given: dict[str, Any], *names: str) -> tuple[Any, ...]:
    """The named fields in order; a name that ends in `?` may be missing (None). Any other field is an error."""
    known = {name.removesuffix("?") for name in names}
    if unknown := sorted(set(given) - known):
        raise ValueError(f"unknown input fields: {', '.join(unknown)}")
    return tuple(given.get(name[:-1]) if name.endswith("?") else given[name] for name in names)
