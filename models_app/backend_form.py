"""A backend of a host, as a form."""

from __future__ import annotations

from typing import Any

from django import forms

from gpus_app.models import Backend
from models_app.core.launch.audio_devices import FLAVOURS
from models_app.pages.engine_words import KIND_NAMES
from models_app.services.backends import BackendValues
from quartermaster_site.errors import EditConflict, Refused

VARIANTS = tuple(dict.fromkeys([*FLAVOURS, "sycl"]))
_TYPED = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


def _text(placeholder: str = "", **attributes: str) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "form-control q-n", "placeholder": placeholder, **_TYPED, **attributes})


class BackendForm(forms.Form):
    """A new backend, or one that is there: then its id is fixed and `edition` says what the person saw."""

    kind = forms.ChoiceField(
        label="Kind",
        choices=[(slug, name) for slug, name in KIND_NAMES.items()],
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text="Two projects call their program tts-server: its own help text decides; a wrong kind is not used.",
    )
    path = forms.CharField(
        label="Executable",
        max_length=1024,
        error_messages={"required": "Write the whole path of the executable, from the root on."},
        widget=_text("/opt/llama.cpp/bin/llama-server"),
        help_text="The whole path on that machine.",
    )
    name = forms.CharField(
        label="Name", required=False, max_length=100, widget=_text(), help_text="As lists show it. Empty: its path."
    )
    variant = forms.CharField(
        label="Build variant",
        required=False,
        max_length=32,
        widget=_text("vulkan"),
        help_text=f"What it was built for: {', '.join(VARIANTS)}. audio.cpp is told to use it.",
    )
    slug = forms.CharField(
        label="Id",
        required=False,
        max_length=40,
        widget=_text("llama-vulkan"),
        help_text="What pins and files name it by; it cannot be changed later. Empty: one after its kind.",
    )
    edition = forms.IntegerField(widget=forms.HiddenInput, min_value=0, required=False)

    def __init__(self, data: Any = None, *, backend: Backend | None = None, path: str = "") -> None:
        """`path` was picked elsewhere and is put into the form."""
        fields = ("kind", "path", "name", "variant", "edition")
        initial = {name: getattr(backend, name) for name in fields} if backend else {}
        initial |= {"path": path[:1024]} if path else {}
        super().__init__(data, auto_id="f-%s", initial=initial)
        if backend:
            del self.fields["slug"]

    def values(self) -> BackendValues:
        """Only for a valid form."""
        return BackendValues(**{name: self.cleaned_data[name] for name in ("kind", "path", "name", "variant")})

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)

    def take_conflict(self, error: EditConflict) -> None:
        """Say what is stored; sent once more, the form stores its own values over it."""
        stored = ", ".join(f"{key} {value}" for key, value in error.saved.items() if key != "id" and value)
        self.add_error(None, f"{error} It is now: {stored}.")
        self.data = {**{key: self.data.get(key, "") for key in self.data}, "edition": str(error.version)}
