"""A folder to scan, as a form."""

from __future__ import annotations

from django import forms

from models_app.core.fields import CATEGORIES
from quartermaster_site.errors import Refused

_NAMES = {
    "3d": "3D",
    "llm": "text",
    "tts": "speech",
    "segment": "segmentation",
    "transcribe": "transcription",
    "embed": "embedding",
}


class RootForm(forms.Form):
    path = forms.CharField(
        label="Folder",
        max_length=1024,
        strip=True,
        error_messages={"required": "Write the whole path of a folder, such as /srv/models."},
        widget=forms.TextInput(
            attrs={
                "class": "form-control q-n",
                "placeholder": "/srv/models",
                "autocomplete": "off",
                "spellcheck": "false",
                "autocapitalize": "none",
            }
        ),
        help_text="The whole path on that machine. It may be missing now: an unplugged drive, a share not yet mounted.",
    )
    category = forms.ChoiceField(
        label="Holds",
        required=False,
        choices=[("", "everything (main folder)"), *((slug, f"only {_NAMES.get(slug, slug)}") for slug in CATEGORIES)],
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text="A folder of one kind is shown under its tab.",
    )

    def __init__(self, data: object = None, *, path: str = "") -> None:
        """`path` was picked elsewhere and is put into an empty form."""
        super().__init__(data, auto_id="f-%s", initial={"path": path[:1024]})  # type: ignore[arg-type]

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)
