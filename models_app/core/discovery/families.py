"""Which files are quants of one model, and which models are one family (discovery.md 8).

One implementation serves the table grouping, the inheritance of sidecars and the pairing of prompt rewriters.
"""

from __future__ import annotations

import re

from models_app.core.discovery.identity import RECIPE_MARKERS, quant_part_index

_SIZE = re.compile(r"[a-z]?(?:[0-9]+x)?[0-9]+(?:\.[0-9]+)?[bm]", re.ASCII)
_MOE_TAIL = re.compile(r"a[0-9]+(?:\.[0-9]+)?b", re.ASCII)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*", re.ASCII)
_LINE_WORDS = frozenset(
    {
        "air",
        "asr",
        "audio",
        "code",
        "coder",
        "flash",
        "h",
        "i2v",
        "large",
        "math",
        "max",
        "medium",
        "micro",
        "mini",
        "nano",
        "next",
        "omni",
        "pro",
        "small",
        "super",
        "t2v",
        "ti2v",
        "tiny",
        "tts",
        "ultra",
        "vision",
        "vl",
    }
)
"""Words between a model's name and its size that name a line of it: alone they would lose the lineage."""


def model_base_key(model_id: str) -> str:
    """The id without its quant and all that follows it: equal for every quant of one model."""
    parts = model_id.strip().lower().split("-")
    while len(parts) > 1 and parts[-1] == "gguf":
        parts.pop()
    index = quant_part_index(parts)
    if index > 0:
        parts = parts[:index]
    while len(parts) > 1 and parts[-1] in RECIPE_MARKERS:
        parts.pop()
    return "-".join(parts)


def family_key(model_id: str) -> str:
    """Name, version and size of the base model: equal for its finetunes too."""
    base = model_base_key(model_id)
    parts = base.split("-")
    size = next((index for index, part in enumerate(parts) if _is_size(part)), 0)
    if size == 0:
        return base
    first = size - 1
    while first > 0 and (parts[first] in _LINE_WORDS or _VERSION.fullmatch(parts[first])):
        first -= 1
    end = size + 1
    if end < len(parts) and _MOE_TAIL.fullmatch(parts[end]):
        end += 1
    return "-".join(parts[first:end])


def _is_size(part: str) -> bool:
    return _SIZE.fullmatch(part) is not None and _MOE_TAIL.fullmatch(part) is None
