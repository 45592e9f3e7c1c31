"""Where a host's router listens, as a form. The key that is stored never comes back to a browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from models_app.models import Router
from models_app.router.client import CLIENTS, DEFAULT_URLS
from quartermaster_site.errors import EditConflict, Refused


class RouterForm(forms.Form):
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    url = forms.CharField(
        label="Router address",
        required=False,
        max_length=300,
        widget=forms.TextInput(attrs={"class": "form-control q-n", "autocomplete": "off", "spellcheck": "false"}),
        help_text="As the host's own worker reaches it. Empty: the router is not asked.",
    )
    key = forms.CharField(
        label="Key",
        required=False,
        max_length=400,
        strip=True,
        widget=forms.PasswordInput(attrs={"class": "form-control", "autocomplete": "new-password"}),
    )
    without_key = forms.BooleanField(label="Forget the stored key", required=False)
    reload_after_write = forms.BooleanField(
        label="Reload after a write",
        required=False,
        help_text="The router reads a new file at once. When it refuses it, the file before is put back.",
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, router: Router, dialect: str) -> None:
        initial = {"url": router.url, "reload_after_write": router.reload_after_write, "version": router.version}
        super().__init__(data, auto_id="f-%s", initial=initial)
        self.fields["url"].widget.attrs["placeholder"] = DEFAULT_URLS[dialect]
        self.fields["key"].help_text = (
            "A key is stored. Leave this empty to keep it; a new address needs it again."
            if router.key
            else "Only where the router wants one. It is kept secret."
        )
        if not router.key:
            del self.fields["without_key"]
        if CLIENTS[dialect].reload is None:
            del self.fields["reload_after_write"]

    def values(self, router: Router) -> dict[str, Any]:
        """What `save_router` takes. Only for a valid form."""
        key = "" if self.cleaned_data.get("without_key") else (self.cleaned_data["key"] or None)
        return {
            "url": self.cleaned_data["url"],
            "key": key,
            "reload_after_write": self.cleaned_data.get("reload_after_write", router.reload_after_write),
            "version": self.cleaned_data["version"],
        }

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)

    def take_conflict(self, error: EditConflict) -> None:
        """Say that somebody saved meanwhile; sent once more, the form stores its own values over theirs."""
        now = error.saved.get("url") or "none"
        self.add_error(None, f"{error} The address is now {now}. Apply once more to store yours instead.")
        self.data = {**{name: self.data.get(name, "") for name in self.data}, "version": str(error.version)}
