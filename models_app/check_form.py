"""The settings of checks against llama.cpp as a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from models_app.check_settings import EXTRA_KEY, PROGRAM_KEY, CheckSettings
from quartermaster_site.errors import EditConflict, Refused

KEYS = (PROGRAM_KEY, EXTRA_KEY)


class CheckForm(forms.Form):
    """Naming a program is for administrators: others see the path, and what they send for it changes nothing."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    fitParams = forms.CharField(  # noqa: N815  the key of the section
        label="llama-fit-params",
        required=False,
        max_length=1024,
        widget=forms.TextInput(attrs={"placeholder": "beside the server", "class": "form-control"}),
        help_text="Its whole path on the host. Empty: the one beside each llama.cpp server.",
    )
    measuredExtra = forms.BooleanField(  # noqa: N815
        label="Keep measured extra free",
        required=False,
        help_text="What llama.cpp was measured to hold beyond a projection is kept free by later plans of that model"
        " on that build, on top of the headroom.",
    )

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, stored: CheckSettings, may_name_program: bool = True
    ) -> None:
        self.stored = stored
        initial = {PROGRAM_KEY: stored.program, EXTRA_KEY: stored.keeps_extra_free, "version": stored.version}
        super().__init__(data, auto_id="f-%s", initial=initial)
        self.fields[PROGRAM_KEY].disabled = not may_name_program

    def values(self) -> dict[str, Any]:
        """What `save_check_settings` takes."""
        return {key: self.cleaned_data[key] for key in KEYS}

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)

    def take_conflict(self, error: EditConflict) -> None:
        """Say that somebody saved meanwhile; sent once more, the form stores its own values over theirs."""
        kept = "on" if error.saved.get(EXTRA_KEY, True) else "off"
        path = error.saved.get(PROGRAM_KEY) or "beside the server"
        self.add_error(None, f"{error} They are now: {path}, {kept}. Apply once more to store yours instead.")
        self.data = {**{key: self.data.get(key, "") for key in self.data}, "version": str(error.version)}
