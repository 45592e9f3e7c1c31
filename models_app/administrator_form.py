"""The first account, as a form of the wizard."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.password_validation import password_validators_help_texts
from django.forms.widgets import Input

from quartermaster_site.errors import Refused


def _widget(kind: type[Input] = forms.TextInput, **attrs: str) -> Input:
    return kind(attrs={"class": "form-control", **attrs})


class AdministratorForm(forms.Form):
    username = forms.CharField(
        label="Username", max_length=150, widget=_widget(autocomplete="username", autocapitalize="none")
    )
    email = forms.EmailField(
        label="E-mail", required=False, widget=_widget(forms.EmailInput, autocomplete="email"), help_text="Optional."
    )
    password = forms.CharField(
        label="Password",
        max_length=256,
        strip=False,
        widget=_widget(forms.PasswordInput, autocomplete="new-password"),
        help_text=" ".join(password_validators_help_texts()[1:2]),
    )
    again = forms.CharField(
        label="Password again",
        max_length=256,
        strip=False,
        widget=_widget(forms.PasswordInput, autocomplete="new-password"),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="f-%s")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("password") and values.get("again") and values["password"] != values["again"]:
            self.add_error("again", "The two passwords differ. Type the same one twice.")
        return values

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
