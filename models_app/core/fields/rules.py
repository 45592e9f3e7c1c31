"""Which fields a form of a rule shows: those of every kind of model that it matches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from models_app.core.fields.field import Field
from models_app.core.fields.groups import ARGUMENT_KEYS, model_fields
from models_app.core.fields.model import OVERRIDE_FIELDS

_LABELS = {
    "match": (
        "Pattern",
        "Of whole paths, capitals or not: * is any run of characters, folders included, ? is one. Such as *qwen3*.",
    ),
    "quant": ("Quantisation", "As in the file name, such as Q4_K_M. Blank: any."),
}
IDENTITY_FIELDS = tuple(
    replace(field, label=_LABELS[field.key][0], help=_LABELS[field.key][1], trimmed=True)
    for field in OVERRIDE_FIELDS
    if field.key in _LABELS
)
"""What says which models a rule is for."""

_CHAT = ("llm", "llama")
_ONE_MODELS_OWN = frozenset({"servedId"})
_ARGUMENTS = frozenset(ARGUMENT_KEYS) - {"extraArgs"}


def rule_fields(kinds: Collection[tuple[str, str]], *, arguments: bool = False) -> tuple[Field, ...]:
    """What a rule may set for models of these (class, kind of backend), for chat models where it matches none.

    With `arguments` the launch text is among them.
    """
    keys = {field.key for kind in kinds or [_CHAT] for field in model_fields(*kind)} - _ONE_MODELS_OWN
    return tuple(field for field in OVERRIDE_FIELDS if field.key in (keys | _ARGUMENTS if arguments else keys))
