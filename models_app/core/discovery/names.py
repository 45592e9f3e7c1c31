"""Names under which rows are served, and labels that people see (discovery.md 5.3 and 5.4)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from models_app.core.catalog import Row
from models_app.core.discovery.identity import is_quant_token

_CRUMBS = frozenset({"ud", "i1", "k", "m", "s", "l", "xs", "xm", "xl", "xxs", "xxm", "xxl"})


def slugify(text: str) -> str:
    """Lower case; every run of other characters than a-z and 0-9 becomes one dash; no dash at the ends."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def sort_key(row: Row) -> tuple[str, str, str]:
    """Emit order of rows."""
    return row.id, row.publisher, row.full_path


def free_name(row: Row, taken: Container[str]) -> str:
    """The first free served name of a row: id, then with publisher, then with repository, then numbered.

    `taken` holds the names of earlier rows and of every profile emitted for them.
    """
    candidate = row.id
    if candidate not in taken:
        return candidate
    for suffix in (slugify(row.publisher), slugify(f"{row.publisher}-{row.repo}")):
        if suffix:
            candidate = f"{row.id}-{suffix}"
            if candidate not in taken:
                return candidate
    number = 2
    while f"{candidate}-{number}" in taken:
        number += 1
    return f"{candidate}-{number}"


def unique_names(rows: Iterable[Row], taken: Iterable[str] = ()) -> list[str]:
    """Served names of rows that have one profile each, in the given order."""
    used = set(taken)
    names = []
    for row in rows:
        name = free_name(row, used)
        used.add(name)
        names.append(name)
    return names


def prettify(model_id: str) -> str:
    """A label for an id: words split at dashes and underscores, first letters upper case."""
    words = [word for word in re.split(r"[-_]", model_id) if word]
    return " ".join(word[0].upper() + word[1:] for word in words)


def strip_quant_crumbs(label: str) -> str:
    """The label without trailing remains of a quant (`UD Q4 K XL`); the last word always stays."""
    words = label.split()
    while len(words) > 1 and (words[-1].lower() in _CRUMBS or is_quant_token(words[-1])):
        words.pop()
    return " ".join(words)
