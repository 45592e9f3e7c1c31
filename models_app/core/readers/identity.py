"""Grouping keys from what a file says about itself (headers.md 9).

Rows with the same `model_key` are one model in several quants, rows with the same `family_key` finetunes of one base.
The keys are opaque: compare them, never show or parse them. Both empty: the file says nothing, names decide.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_JUNK = frozenset({"source", "hf", "gguf", "converted", "quantized", "imatrix", "main", "model"})
_HASH = re.compile(r"[0-9a-f]{16,}")


class IdentityKeys(NamedTuple):
    model_key: str = ""
    family_key: str = ""


def identity_keys(base_name: str, size_label: str, fine_tune: str, general_name: str) -> IdentityKeys:
    """The two keys of a header's four identity strings, any of which may be empty or junk."""
    base, size, tune, name = (_normalise(text) for text in (base_name, size_label, fine_tune, general_name))
    if base:
        stem = _without_size(base, size)
        if not stem:
            return IdentityKeys()
        family = f"{stem}-{size}" if size else stem
        return IdentityKeys(f"{family}-{tune}" if tune else family, family)
    family = _without_size(name, size)
    return IdentityKeys(name, family) if family else IdentityKeys()


def _normalise(text: str) -> str:
    """Lower case with single hyphens, "" for values that converters write when they know nothing."""
    slug = re.sub(r"[^a-z0-9.]+", "-", text.strip().lower()).strip("-")
    return "" if slug in _JUNK or _HASH.fullmatch(slug) else slug


def _without_size(base: str, size: str) -> str:
    """The base without the parts of the size label, wherever they stand in a row (`35b-a3b` in `qwen3.5-35b-a3b`)."""
    if not size:
        return base
    parts, run = base.split("-"), size.split("-")
    kept: list[str] = []
    index = 0
    while index < len(parts):
        if parts[index : index + len(run)] == run:
            index += len(run)
        else:
            kept.append(parts[index])
            index += 1
    return "-".join(kept).strip("-")
