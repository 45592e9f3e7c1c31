"""The what-if form of a model: values to plan with that nothing stores (web.md 5.5).

It reads the field catalogue for names, ranges and help. `override` gives the core type that the planner takes; the
two placement numbers become pins of the launch text, as if they had been typed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django import forms

from gpus_app.memory_settings import MOST_GIB
from models_app.core.catalog import Header
from models_app.core.fields import KV_TYPES, OVERRIDE_FIELDS
from models_app.core.fields.field import Field
from models_app.core.launch.ownership import custom_text
from models_app.core.settings import Override
from quartermaster_site.number_fields import NumberField

CATALOGUE: dict[str, Field] = {field.key: field for field in OVERRIDE_FIELDS}
PLAIN_KEYS = ("ctx", "parallel", "kvK", "kvV", "kvInRam", "vramTargetGB", "ub", "flashAttn")
"""Keys of the form that are fields of an override too."""
PIN_FLAGS = {"ngl": "-ngl", "nCpuMoe": "--n-cpu-moe"}
GROUPS = (
    ("Essentials", ("ctx", "parallel", "kvK", "kvV", "vramTargetGB")),
    ("Placement", ("ngl", "nCpuMoe", "kvInRam")),
    ("Performance", ("ub", "flashAttn")),
)
_SHORTEST_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the form: facts of the model."""

    trained_tokens: int
    block_count: int
    has_experts: bool

    @classmethod
    def of(cls, header: Header) -> Limits:
        return cls(header.context_length, header.block_count, header.is_moe)


class WhatIfForm(forms.Form):
    """Every field may be left empty, which means automatic."""

    def __init__(
        self, data: Mapping[str, Any] | None, *, limits: Limits, automatic: Mapping[str, str], prefix: str | None = None
    ) -> None:
        super().__init__(data, auto_id="f-%s", prefix=prefix)
        self.limits = limits
        self.fields.update(_fields(limits, automatic))

    def override(self, stored: Override) -> Override:
        """`stored` with what the form says laid over it. Only for a valid form."""
        changes = {
            CATALOGUE[key].attribute: self.cleaned_data[key]
            for key in PLAIN_KEYS
            if self.cleaned_data.get(key) not in (None, "", False)
        }
        pins = " ".join(
            f"{flag} {self.cleaned_data[key]}"
            for key, flag in PIN_FLAGS.items()
            if self.cleaned_data.get(key) is not None
        )
        if pins:
            # A line of their own: the text before may end in a comment.
            changes |= {"custom_args": f"{custom_text(stored)}\n{pins}".strip("\n"), "custom_args_off": False}
        return replace(stored, **changes)

    def settings(self) -> tuple[dict[str, Any], str]:
        """What the form says as values of an override, and the flags for which no setting stands. For a valid form."""
        values = {key: self.cleaned_data[key] for key in PLAIN_KEYS if self.cleaned_data.get(key) not in (None, "")}
        if values.get("kvInRam") is False:
            del values["kvInRam"]
        experts, layers = self.cleaned_data.get("nCpuMoe"), self.cleaned_data.get("ngl")
        if experts:
            values["cpuOffload"] = experts
        elif layers and not self.limits.has_experts and layers <= self.limits.block_count:
            values["cpuOffload"] = self.limits.block_count + 1 - layers
            layers = None
        left = {"-ngl": layers, "--n-cpu-moe": experts if experts == 0 else None}
        return values, " ".join(f"{flag} {value}" for flag, value in left.items() if value is not None)

    def query(self) -> str:
        """What was filled in, as a query string: the address of this what-if."""
        return urlencode(self.typed())

    def typed(self) -> dict[str, str]:
        """What was filled in, by key."""
        texts = {key: str(self.data.get(self.add_prefix(key), "")).strip() for key in self.fields}
        return {key: text for key, text in texts.items() if text}

    def rows(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Bound fields by group, in order; a group with no field for this model is left out."""
        groups = [(title, [self[key] for key in keys if key in self.fields]) for title, keys in GROUPS]
        return [(title, fields) for title, fields in groups if fields]


def _fields(limits: Limits, automatic: Mapping[str, str]) -> dict[str, forms.Field]:
    fields: dict[str, forms.Field] = {
        "ctx": _number("ctx", automatic, tokens=True, **_context_range(limits)),
        "parallel": _number("parallel", automatic, whole=True),
        "kvK": _choice("kvK", automatic, KV_TYPES),
        "kvV": _choice("kvV", automatic, KV_TYPES),
        "vramTargetGB": _number("vramTargetGB", automatic, maximum=MOST_GIB),
        "ngl": NumberField(
            label="Layers on the GPU",
            help_text=f"Counts the output as one more: 0 to {limits.block_count + 1}.",
            whole=True,
            minimum=0,
            maximum=limits.block_count + 1,
            required=False,
            widget=_text(automatic.get("ngl", "")),
        ),
        "kvInRam": forms.BooleanField(
            label=CATALOGUE["kvInRam"].label, help_text=CATALOGUE["kvInRam"].help, required=False
        ),
        "ub": _number("ub", automatic, whole=True),
        "flashAttn": _choice("flashAttn", automatic, ("on", "off")),
    }
    if limits.has_experts:
        fields["nCpuMoe"] = NumberField(
            label="Expert layers in RAM",
            help_text=f"Their experts stay in RAM: 0 to {limits.block_count}.",
            whole=True,
            minimum=0,
            maximum=limits.block_count,
            required=False,
            widget=_text(automatic.get("nCpuMoe", "")),
        )
    return fields


def _context_range(limits: Limits) -> dict[str, Any]:
    trained = limits.trained_tokens
    if not trained:
        return {"minimum": 1, "maximum": 1 << 24}
    return {"minimum": min(_SHORTEST_CONTEXT, trained), "maximum": trained}


def _text(placeholder: str) -> forms.TextInput:
    return forms.TextInput(attrs={"placeholder": placeholder, "class": "form-control q-n"})


def _number(key: str, automatic: Mapping[str, str], **options: Any) -> NumberField:
    row = CATALOGUE[key]
    options.setdefault("minimum", row.minimum)
    options.setdefault("maximum", row.maximum)
    return NumberField(
        label=row.label,
        help_text=row.help,
        unit=row.unit,
        above_minimum=row.above_minimum,
        required=False,
        widget=_text(automatic.get(key, "")),
        **options,
    )


def _choice(key: str, automatic: Mapping[str, str], values: tuple[str, ...]) -> forms.ChoiceField:
    row = CATALOGUE[key]
    now = automatic.get(key, "")
    choices = [("", f"Automatic ({now})" if now else "Automatic"), *((value, value) for value in values)]
    return forms.ChoiceField(
        label=row.label,
        help_text=row.help,
        choices=choices,
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
        error_messages={"invalid_choice": f"{row.label} takes one of {', '.join(values)}, or nothing for automatic."},
    )
