"""A person, as a form of administrators."""

from __future__ import annotations

from typing import Any

from django import forms

from quartermaster_site.access.models import Role
from quartermaster_site.access.people import PersonValues, values_of
from quartermaster_site.errors import Refused

ROLE_HELP = (
    "Viewer sees everything. Operator also scans, tests, publishes. Editor also changes models and memory."
    " Admin also changes folders, backends, targets and people."
)
_TYPED = {"class": "form-control", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class PersonForm(forms.Form):
    """A new person, or one who is there: then the name is fixed and the form carries what was seen."""

    username = forms.CharField(label="Username", max_length=150, widget=forms.TextInput(attrs=_TYPED))
    role = forms.ChoiceField(
        label="Role", choices=Role.choices, widget=forms.Select(attrs={"class": "form-select"}), help_text=ROLE_HELP
    )
    email = forms.EmailField(
        label="E-mail", required=False, max_length=254, widget=forms.EmailInput(attrs=_TYPED), help_text="Optional."
    )
    custom_args = forms.BooleanField(
        label="Custom arguments",
        required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
        help_text="An editor may write launch arguments, which can make a server read or write other files.",
    )
    active = forms.BooleanField(
        label="May sign in",
        required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
        help_text="Off: open sessions end with the next request; what the person did stays on record.",
    )

    def __init__(self, data: Any = None, *, person: Any = None) -> None:
        stored = values_of(person) if person else PersonValues(role=Role.VIEWER)
        super().__init__(data, auto_id="f-%s", initial=stored.as_shown())
        if person:
            del self.fields["username"]
        else:
            del self.fields["active"]
        self.stored = stored

    def values(self) -> PersonValues:
        """Only for a valid form."""
        kept = {name: self.cleaned_data[name] for name in ("role", "email", "custom_args")}
        return PersonValues(**kept, active=self.cleaned_data.get("active", True))

    def seen(self) -> dict[str, Any]:
        """What stood on the page, as far as the form carried it."""
        flags = {
            name: self.data[f"was-{name}"] == "1" for name in ("custom_args", "active") if f"was-{name}" in self.data
        }
        return {name: self.data[f"was-{name}"] for name in ("role", "email") if f"was-{name}" in self.data} | flags

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
        if not error.fields:
            self.add_error(None, str(error))
