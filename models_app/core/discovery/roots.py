"""Folders that are scanned, and when two paths mean the same file (discovery.md 1).

Path rules follow a `platform` argument (`linux`, `darwin`, `windows`), never the machine that runs the code: a control
process may hold paths of a host of another kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from models_app.core.fields import CATEGORIES

FOLDING_PLATFORMS = frozenset({"windows", "darwin"})


@dataclass(frozen=True, slots=True)
class Root:
    """One folder to scan. A blank category is the main root."""

    path: str
    category: str = ""


def is_category(text: str) -> bool:
    """Exact and case-sensitive: the ids are written into files and URLs."""
    return text in CATEGORIES


def path_key(path: str, platform: str) -> str:
    """Equal keys mean the same file. For comparing only: a key is never shown, stored or opened."""
    if platform == "windows":
        path = path.replace("\\", "/")
    return path.lower() if platform in FOLDING_PLATFORMS else path


def root_list(models_root: str, category_roots: Mapping[str, str], platform: str) -> tuple[Root, ...]:
    """The main root, then the category roots in category order, trimmed, without blanks and repeats."""
    wanted = [Root(models_root.strip())]
    wanted += [Root(category_roots.get(category, "").strip(), category) for category in CATEGORIES]
    return without_repeats(wanted, platform)


def without_repeats(roots: Iterable[Root], platform: str) -> tuple[Root, ...]:
    """The first root of each path key; blank paths dropped."""
    kept: dict[str, Root] = {}
    for root in roots:
        if root.path:
            kept.setdefault(path_key(root.path, platform), root)
    return tuple(kept.values())
