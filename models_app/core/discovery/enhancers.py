"""Prompt rewriters for image and video models: found and paired by name (discovery.md 14).

Their headers are those of any vision chat model, so only the name can tell; the rule is narrow on purpose.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from models_app.core.discovery.families import model_base_key

REFUSED = "none"
_MARKER = "pe"
_DIRECTIONS = frozenset({"t2i", "i2i"})
_SPELLED = "promptenhanc"
_VISION_TWIN = "-vision"
_EXTENSIONS = (".gguf", ".safetensors", ".ggml")


@dataclass(frozen=True, slots=True)
class EnhancerName:
    """What a rewriter's name says. `direction` is `t2i`, `i2i` or blank; a blank family pairs with nothing."""

    direction: str
    family: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Ids of the rewriters for text prompts and for edits, "" for none."""

    text: str = ""
    edit: str = ""


def enhancer_name(name: str) -> EnhancerName | None:
    """Is this id, file name or path a prompt rewriter? None if not."""
    text = os.path.basename(name.strip().lower().replace("\\", "/"))
    for extension in _EXTENSIONS:
        text = text.removesuffix(extension)
    parts = _dashed(text).split("-")
    pairs = [index for index in range(len(parts) - 1) if parts[index] == _MARKER and parts[index + 1] in _DIRECTIONS]
    spelled = _SPELLED in "".join(parts)
    if not pairs and not spelled:
        return None
    markers = pairs[:1]
    direction = parts[pairs[0] + 1] if pairs else next((part for part in parts if part in _DIRECTIONS), "")
    markers += [index for index, part in enumerate(parts) if part in _DIRECTIONS or part == _MARKER][:1]
    if spelled:
        markers += [index for index, part in enumerate(parts) if "prompt" in part][:1]
    first = min(markers)
    return EnhancerName(direction, model_base_key("-".join(parts[:first])) if first else "")


def is_enhancer(name: str) -> bool:
    return enhancer_name(name) is not None


def detect(ids: Iterable[str]) -> dict[str, Pair]:
    """Image family -> its rewriters, from row ids in emit order. The first of each direction wins."""
    table: dict[str, Pair] = {}
    for model_id in ids:
        found = enhancer_name(model_id)
        if found is None or not found.family:
            continue
        pair = table.get(found.family, Pair())
        if found.direction == "i2i":
            table[found.family] = Pair(pair.text, pair.edit or model_id)
        else:
            table[found.family] = Pair(pair.text or model_id, pair.edit)
    return table


def pair_of(table: dict[str, Pair], image_id: str) -> Pair:
    """The detected rewriters of one image or video model."""
    return table.get(model_base_key(_dashed(image_id.strip().lower())), Pair())


def resolve(detected: Pair, text: str = "", edit: str = "") -> Pair:
    """A configured id wins, blank takes the detected one, `none` is a refusal and is kept."""
    return Pair(_base_id(text) or detected.text, _base_id(edit) or detected.edit)


def _base_id(configured: str) -> str:
    """A rewriter's id without the ending of the vision twin that it once had."""
    wanted = configured.strip()
    base = wanted[: -len(_VISION_TWIN)]
    return base if wanted.lower().endswith(_VISION_TWIN) and is_enhancer(base) else wanted


def _dashed(text: str) -> str:
    return re.sub(r"[_\s]", "-", text)
