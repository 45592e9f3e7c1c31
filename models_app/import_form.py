"""The forms of an import: which file, and what of it is taken over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from models_app.core.export.dialects import DIALECTS
from models_app.services.import_applying import Choice
from models_app.services.importing import AUTO, CONFIG, SETTINGS

KINDS = (
    (AUTO, "Router's file; see which"),
    *((dialect.slug, f"Router's file of {dialect.label}") for dialect in DIALECTS),
    (SETTINGS, "Generate file, sidecar, or an archive of both"),
)
MOST_ITEMS = 100_000


class SourceForm(forms.Form):
    """A file of one's own, or the path of one on the host."""

    kind = forms.ChoiceField(
        label="What it is", choices=KINDS, initial=AUTO, widget=forms.Select(attrs={"class": "form-select"})
    )
    file = forms.FileField(label="File", required=False, allow_empty_file=True, max_length=300)
    path = forms.CharField(label="Or its path on the host", required=False, max_length=1024, strip=True)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors and bool(cleaned.get("file")) == bool(cleaned.get("path")):
            raise forms.ValidationError("Choose a file, or give the path of one on the host.")
        return cleaned

    @property
    def source(self) -> dict[str, str]:
        """`source` and `dialect` as the services take them."""
        kind = self.cleaned_data["kind"]
        return {"source": SETTINGS, "dialect": AUTO} if kind == SETTINGS else {"source": CONFIG, "dialect": kind}


def choice_of(posted: QueryDict, models: Mapping[str, Any]) -> Choice:
    """What is ticked. Entries are called by their number in the report, so that no id of a file is a form's name."""
    ways = {
        name: posted.get(f"way-{number}") or str(found["way"])
        for number, (name, found) in enumerate(models.items())
        if str(number) in set(posted.getlist("entry"))
    }
    numbers = filter(_is_number, posted.getlist("item")[:MOST_ITEMS])
    return Choice(frozenset(posted.getlist("section")), ways, frozenset(map(int, numbers)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9
