"""How often a host looks at its folders, as a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from gpus_app.watch_settings import DEFAULT_SECONDS, KEY, LEAST_SECONDS, MOST_SECONDS, WatchSettings
from models_app.core.discovery.changes import QUIET_SECONDS
from quartermaster_site.errors import EditConflict, Refused
from quartermaster_site.number_fields import NumberField


class WatchForm(forms.Form):
    """Left empty it means the default; 0 switches watching off."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(self, data: Mapping[str, Any] | None = None, *, watch: WatchSettings) -> None:
        initial = {KEY: str(watch.seconds) if watch.is_set else "", "version": watch.version}
        super().__init__(data, auto_id="f-%s", initial=initial)
        self.fields[KEY] = NumberField(
            label="Look for changes every",
            unit="seconds",
            minimum=0,
            maximum=MOST_SECONDS,
            whole=True,
            required=False,
            empty_means="the default",
            widget=forms.TextInput(attrs={"placeholder": str(DEFAULT_SECONDS), "class": "form-control q-n"}),
            help_text=f"Names, sizes and times only. {LEAST_SECONDS} or more, 0 = never. "
            f"Changed files are scanned when they have been quiet for {QUIET_SECONDS} seconds.",
        )

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)

    def take_conflict(self, error: EditConflict) -> None:
        """Say what was saved meanwhile; sent once more, the form stores its own value over it."""
        saved = error.saved.get(KEY, DEFAULT_SECONDS)
        self.add_error(KEY, f"{error.by} saved {saved} seconds meanwhile. Apply once more to store yours instead.")
        self.data = {**{key: self.data.get(key, "") for key in self.data}, "version": str(error.version)}
