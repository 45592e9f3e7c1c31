"""Which fields a form of one model shows, in which groups (web.md 5.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from models_app.core.fields.field import Field
from models_app.core.fields.model import OVERRIDE_FIELDS, VARIANT_FIELDS

GROUPS: dict[str, str] = {
    "essentials": "Essentials",
    "vision": "Vision",
    "reasoning": "Reasoning",
    "sampling": "Sampling",
    "speculation": "Speculative decoding",
    "performance": "Performance",
    "cache": "Cache and checkpoints",
    "rope": "RoPE",
    "multi-gpu": "Multi-GPU",
    "components": "Components",
    "generation": "Generation",
    "defaults": "Defaults of a request",
    "enhancer": "Prompt enhancer",
    "vllm": "vLLM",
    "audio": "Audio",
    "speech": "Speech server",
    "arguments": "Adapters and arguments",
    "visibility": "Visibility",
}
"""Slug of a group -> its title, in the order of a form."""

OPEN_GROUPS = frozenset({"essentials", "vision", "reasoning", "components", "generation", "audio", "speech", "vllm"})
"""Groups that a form shows unfolded; the others unfold by themselves when something is set in them."""

ARGUMENT_KEYS = ("customArgs", "customArgsOff", "customArgsOnly", "extraArgs")
"""The launch text: a form of its own, and a grant of its own."""

_OF_THE_TWIN = frozenset({"ctx", "vramTargetGB", "mmproj", "unlisted"})
"""What the variant named `vision` says about the entry that loads a projector."""

_ELSEWHERE = frozenset({"match", "quant", "variants", "name", *ARGUMENT_KEYS})


def model_fields(model_class: str, engine: str) -> tuple[Field, ...]:
    """Fields of an override that count for a class on a kind of backend, without the launch text."""
    return tuple(
        field for field in OVERRIDE_FIELDS if field.key not in _ELSEWHERE and _fits(field, model_class, engine)
    )


def offered(fields: Iterable[Field], flags: Collection[str], stored: Collection[str] = ()) -> tuple[Field, ...]:
    """Those of the fields that a build can be told: the ones that stand for a flag need it, or a stored value."""
    return tuple(field for field in fields if not field.flag or field.flag in flags or field.key in stored)


def variant_fields(
    model_class: str, engine: str, *, vision: bool = False, arguments: bool = False
) -> tuple[Field, ...]:
    """Fields of a variant, with its launch text if `arguments`. The one that tunes the vision twin has few."""
    fields = tuple(field for field in VARIANT_FIELDS if _fits(field, model_class, engine))
    if vision:
        return tuple(field for field in fields if field.key in _OF_THE_TWIN)
    shown = {"customArgs"} if arguments else set()
    return tuple(field for field in fields if field.key in shown or field.key not in _ELSEWHERE | {"mmproj"})


def takes_arguments(model_class: str, engine: str) -> bool:
    """Whether a launch text applies to a class on a kind of backend."""
    custom = next(field for field in OVERRIDE_FIELDS if field.key == "customArgs")
    return _fits(custom, model_class, engine)


def grouped(fields: Iterable[Field]) -> dict[str, list[Field]]:
    """Group slug -> its fields, groups in the order of `GROUPS`."""
    found: dict[str, list[Field]] = {}
    for field in fields:
        found.setdefault(field.group, []).append(field)
    return {slug: found[slug] for slug in GROUPS if slug in found}


def _fits(field: Field, model_class: str, engine: str) -> bool:
    right_class = not field.classes or model_class in field.classes
    return right_class and (not field.backends or engine in field.backends)
