"""How the pages look to one person, and their address."""

from __future__ import annotations

from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms

from quartermaster_site.access.models import Account

_CHOSEN = {"class": "form-select"}
PREFERENCES = ("theme", "density", "time_zone", "shortcuts")


@cache
def zones() -> tuple[tuple[str, str], ...]:
    """Names of regions; those without one are old spellings of the same."""
    named = sorted(name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "posix/")))
    return (("", "UTC"), *((name, name.replace("_", " ")) for name in named))


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]
    email = forms.EmailField(
        label="E-mail",
        required=False,
        max_length=254,
        widget=forms.EmailInput(attrs={"class": "form-control", "autocomplete": "email"}),
        help_text="For administrators to know; nothing is sent to it.",
    )
    time_zone = forms.ChoiceField(
        label="Time zone",
        required=False,
        widget=forms.Select(attrs=_CHOSEN),
        help_text="Times stand in it; pointing at one shows UTC.",
    )

    class Meta:
        model = Account
        fields = PREFERENCES
        labels = {"shortcuts": "Single-key shortcuts"}
        help_texts = {"shortcuts": "Off: only keys with Ctrl, Alt or Cmd do something."}
        widgets = {
            "theme": forms.Select(attrs=_CHOSEN),
            "density": forms.Select(attrs=_CHOSEN),
            "shortcuts": forms.CheckboxInput(attrs={"class": "form-check-input"}),
        }

    def __init__(self, data: Any = None, *, user: Any) -> None:
        account = getattr(user, "account", None) or Account(user=user)
        super().__init__(data, instance=account, initial={"email": user.email}, auto_id="f-%s")
        self.fields["time_zone"].choices = zones()  # type: ignore[attr-defined]

    def preferences(self) -> dict[str, Any]:
        """Only for a valid form."""
        return {name: self.cleaned_data[name] for name in PREFERENCES}
