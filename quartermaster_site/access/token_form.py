"""A token for scripts, as a form."""

from __future__ import annotations

from typing import Any

from django import forms

from quartermaster_site.access.tokens import LIFETIMES_DAYS
from quartermaster_site.errors import Refused

_CHOICES = [(days, f"{days} days" if days else "no end") for days in LIFETIMES_DAYS]


class TokenForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=64,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "placeholder": "backup script"}),
        help_text="What uses it, so that you know which one to revoke.",
    )
    days = forms.TypedChoiceField(
        label="Valid for",
        choices=_CHOICES,
        coerce=int,
        initial=90,
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="f-%s")

    def values(self) -> dict[str, Any]:
        """What `create_token` takes. Only for a valid form."""
        return {name: self.cleaned_data[name] for name in ("name", "days")}

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
