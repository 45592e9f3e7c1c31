"""Where the router's file lies on a host, as a form."""

from __future__ import annotations

from typing import Any

from django import forms

from quartermaster_site.errors import Refused


class TargetForm(forms.Form):
    path = forms.CharField(
        label="Path of the router's file",
        required=False,
        max_length=1024,
        widget=forms.TextInput(
            attrs={
                "class": "form-control q-n",
                "placeholder": "/etc/llama-swap/config.yaml",
                "autocomplete": "off",
                "spellcheck": "false",
                "autocapitalize": "none",
            }
        ),
        help_text="The whole path on that machine. Empty: download only.",
    )

    def __init__(self, data: Any = None, *, path: str = "") -> None:
        super().__init__(data, auto_id="f-%s", initial={"path": path})

    def target(self) -> dict[str, str | None]:
        """What the page's two forms set: path and dialect, None for what was not sent. Only for a valid form."""
        return {
            "path": self.cleaned_data["path"] if "path" in self.data else None,
            "dialect": self.data.get("dialect"),
        }

    def seen(self) -> dict[str, str]:
        """The target that stood on the page, as far as the form carried it."""
        names = {"publish_path": "was-path", "publish_dialect": "was-dialect"}
        return {name: self.data[key] for name, key in names.items() if key in self.data}

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
