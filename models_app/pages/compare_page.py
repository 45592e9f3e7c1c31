"""The form of a comparison: one row for each setting with a field for either side, and what each side is called."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.forms import BoundField
from django.urls import reverse

from models_app.whatif_form import WhatIfForm

STORED = "the stored plan"


@dataclass(frozen=True, slots=True)
class TwoFields:
    """One setting: the fields of A and of B."""

    label: str
    fields: tuple[tuple[str, BoundField], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One side in words, and the page that shows it alone."""

    letter: str
    name: str
    address: str


def two_rows(a: WhatIfForm, b: WhatIfForm) -> list[TwoFields]:
    """The settings in the order of the what-if form."""
    pairs = zip(a.rows(), b.rows(), strict=True)
    return [
        TwoFields(str(left.label), (("A", left), ("B", right)))
        for (_, ours), (_, theirs) in pairs
        for left, right in zip(ours, theirs, strict=True)
    ]


def sides_of(pk: int, a: WhatIfForm, b: WhatIfForm) -> tuple[Side, Side]:
    return _side(pk, "A", a), _side(pk, "B", b)


def compare_query(a: WhatIfForm | None, b: WhatIfForm | None) -> str:
    """The address of a comparison; None is the stored plan."""
    values = {}
    for letter, form in (("a", a), ("b", b)):
        values.update({f"{letter}-{key}": text for key, text in (form.typed() if form else {}).items()})
    return urlencode(values)


def _side(pk: int, letter: str, form: WhatIfForm) -> Side:
    texts = [_value_text(form, key, text) for key, text in form.typed().items()]
    query = form.query()
    address = reverse("models:model-show", args=[pk])
    return Side(letter, ", ".join(texts) or STORED, f"{address}?{query}" if query else address)


def _value_text(form: WhatIfForm, key: str, text: str) -> str:
    field = form.fields[key]
    unit = getattr(field, "unit", "")
    label = str(field.label)
    label = label if label[:2].isupper() else label[:1].lower() + label[1:]
    return (
        label
        if text == "on" and field.widget.input_type == "checkbox"
        else f"{label} {text}{' ' if unit else ''}{unit}"
    )
