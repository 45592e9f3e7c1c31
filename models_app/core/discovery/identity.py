"""Who a file is, from its path alone: quant token, id, publisher and repository (discovery.md 5).

The quant token is described by families, so that a new member needs no change here. Groups are restricted to the
shapes that quantisers use, because a greedy one would swallow words (`Q8_0_v2`).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from models_app.core.discovery.shards import strip_shard

_GROUP = r"(?:_(?:[0-9]{1,2}|[a-z]|x{1,3}[sml]|k[a-z]{1,2}|nl|moe|r[0-9]|e[0-9]m[0-9]))"
_TOKEN = rf"(?:i?q[0-9]{{1,2}}{_GROUP}*|tq[0-9]{_GROUP}*|(?:mx|nv)?fp(?:4|8|16|32){_GROUP}*|bf16|f(?:16|32|64))"
_WHOLE = re.compile(_TOKEN, re.ASCII | re.IGNORECASE)
_BOUNDED = re.compile(rf"(?<=[-_. ])({_TOKEN})(?=[-_. ])", re.ASCII | re.IGNORECASE)
RECIPE_MARKERS = frozenset({"ud", "i1"})
"""Whole parts that belong to the quant behind them: unsloth dynamic, imatrix."""
_CACHE_FOLDER = re.compile(r"models--(.+?)--(.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Identity:
    """Names derived from one path. `repo` and `publisher` are blank where the path has no such folder."""

    id: str
    base_id: str
    quant: str
    file_name: str
    publisher: str = ""
    repo: str = ""


def is_quant_token(part: str) -> bool:
    """Is this whole part of a name a quant token? Case does not matter."""
    return _WHOLE.fullmatch(part) is not None


def quant_of(name: str) -> str:
    """The first bounded quant token of a file name in upper case, "" when there is none.

    What follows the first token (`-MTP`, a shard suffix) describes the build and not the weights.
    """
    match = _BOUNDED.search(name)
    return match[1].upper() if match else ""


def quant_part_index(parts: list[str]) -> int:
    """Index of the quant (or of the recipe marker before it) in a dash-split id, -1 if none. Part 0 never counts."""
    for index in range(1, len(parts)):
        if is_quant_token(parts[index]):
            return index - 1 if index > 1 and parts[index - 1].lower() in RECIPE_MARKERS else index
    return -1


def gguf_identity(path: str) -> Identity:
    """Identity of a GGUF file (or of the first shard of a set)."""
    folder, name = os.path.split(path.replace("\\", "/"))
    file_name = strip_shard(name)
    stem = re.sub(r"\s+", "-", os.path.splitext(file_name)[0].strip())
    quant = quant_of(file_name)
    base = stem
    if quant and re.search(rf"[-_.]{re.escape(quant)}$", base, re.IGNORECASE):
        base = base[: -len(quant) - 1]
    base_id = _without_gguf(base).lower() or stem.lower()
    publisher, repo = owner_of(folder)
    return Identity(with_quant(base_id, quant), base_id, quant, file_name, publisher, repo)


def with_quant(base_id: str, quant: str) -> str:
    """The id: the base id, and the quant unless the base id carries it as a part already."""
    token = quant.lower()
    if not token or re.search(rf"(?:^|[-_.]){re.escape(token)}(?:[-_.]|$)", base_id):
        return base_id
    return f"{base_id}-{token}"


def owner_of(folder: str) -> tuple[str, str]:
    """Publisher and repository of a folder: its parent and itself, or what a hub cache folder spells out."""
    cached = cache_owner(folder)
    if cached:
        return cached
    parent, repo = os.path.split(folder.rstrip("/"))
    return os.path.basename(parent), repo


def cache_owner(folder: str) -> tuple[str, str] | None:
    """Owner and repository of a folder inside `models--<owner>--<repo>/snapshots/<commit>`, None elsewhere."""
    parts = folder.replace("\\", "/").split("/")
    for index in range(len(parts) - 3, -1, -1):
        match = _CACHE_FOLDER.fullmatch(parts[index])
        if match and parts[index + 1].lower() == "snapshots":
            return match[1], match[2]
    return None


def cache_snapshot(folder: str) -> tuple[str, str] | None:
    """The `models--...` folder and the commit that a folder belongs to, None outside a hub cache."""
    parts = folder.replace("\\", "/").split("/")
    for index in range(len(parts) - 3, -1, -1):
        if _CACHE_FOLDER.fullmatch(parts[index]) and parts[index + 1].lower() == "snapshots":
            return "/".join(parts[: index + 1]), parts[index + 2]
    return None


def _without_gguf(stem: str) -> str:
    return stem[:-5] if stem.lower().endswith("-gguf") and len(stem) > 5 else stem
