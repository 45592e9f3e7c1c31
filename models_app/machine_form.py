"""A machine elsewhere, as a form."""

from __future__ import annotations

from django import forms

from quartermaster_site.errors import Refused

_TYPED = {"class": "form-control", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class MachineForm(forms.Form):
    slug = forms.CharField(
        label="Short name",
        max_length=40,
        error_messages={"required": "Write a short name, such as gpu-a."},
        widget=forms.TextInput(attrs={**_TYPED, "class": "form-control q-n", "placeholder": "gpu-a"}),
        help_text="Lower-case letters, digits and dashes. It names the host in addresses and commands, and stays.",
    )
    name = forms.CharField(
        label="Name",
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs=_TYPED),
        help_text="For people; the short name when empty.",
    )

    def __init__(self, data: object = None) -> None:
        super().__init__(data, auto_id="f-%s")  # type: ignore[arg-type]

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
