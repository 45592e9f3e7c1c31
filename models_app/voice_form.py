"""A new voice, an audition, and the address of a speech server, as forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from models_app.core.classes.qwentts import BASE, CUSTOM_VOICE, VOICE_DESIGN, WAV
from models_app.core.classes.voices import (
    MAX_FRAMES,
    MAX_NAME_CHARACTERS,
    MAX_REFERENCE_CHARACTERS,
    MAX_RVQ_BYTES,
    MAX_SPK_BYTES,
    MAX_TEXT_CHARACTERS,
    MAX_WAV_BYTES,
)
from models_app.services.voices import NewVoice
from quartermaster_site.errors import Refused
from quartermaster_site.number_fields import NumberField

_PLAIN = {"class": "form-control q-n", "autocomplete": "off", "spellcheck": "false"}
MOST_BYTES = {"wav": MAX_WAV_BYTES, "spk": MAX_SPK_BYTES, "rvq": MAX_RVQ_BYTES}
"""More than this of a file is not read: it would be refused."""
INSTRUCTIONS_CHARACTERS = 500


class _Form(forms.Form):
    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)


def _file(label: str, accept: str, hint: str) -> forms.FileField:
    return forms.FileField(
        label=label,
        required=False,
        allow_empty_file=True,
        help_text=hint,
        max_length=300,
        widget=forms.FileInput(attrs={"class": "form-control", "accept": accept}),
    )


class VoiceForm(_Form):
    """A recording, or latents that were extracted before."""

    name = forms.CharField(
        label="Name",
        max_length=MAX_NAME_CHARACTERS,
        widget=forms.TextInput(attrs=_PLAIN),
        help_text="As requests name it: letters without accents, digits, blanks, - and _.",
    )
    wav = _file(
        "Recording",
        ".wav,audio/wav,audio/x-wav",
        f"A WAV of one speaker, some seconds: 16 or 24 bits or 32-bit float, up to {MAX_WAV_BYTES >> 20} MiB.",
    )
    spk = _file("Speaker file", ".spk", "Instead of a recording: the .spk that qwen-codec wrote …")
    rvq = _file("Codes", ".rvq", "… and the .rvq beside it.")
    ref_text = forms.CharField(
        label="What is said in it",
        required=False,
        max_length=MAX_REFERENCE_CHARACTERS,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": "3"}),
        help_text="Word for word. With it a server clones more closely; without it only the timbre is taken.",
    )
    replaces = forms.BooleanField(label="Replace a voice of this name", required=False)

    def __init__(self, data: Any = None, files: Any = None) -> None:
        super().__init__(data, files, auto_id="f-%s")

    def values(self) -> NewVoice:
        """Only for a valid form. Reads the files, as far as any of them may be long."""
        given = {name: _bytes(self.cleaned_data[name], most) for name, most in MOST_BYTES.items()}
        return NewVoice(
            name=self.cleaned_data["name"],
            ref_text=self.cleaned_data["ref_text"],
            replaces=self.cleaned_data["replaces"],
            **given,
        )


def _bytes(upload: UploadedFile[bytes] | None, most: int) -> bytes:
    return upload.read(most + 1) if upload is not None else b""


def _number(label: str, hint: str, low: float, high: float, **more: Any) -> NumberField:
    return NumberField(
        label=label,
        required=False,
        minimum=low,
        maximum=high,
        help_text=hint,
        empty_means="the model's own",
        widget=forms.TextInput(attrs=_PLAIN),
        **more,
    )


class AuditionForm(_Form):
    """A text to speak, by whom and how."""

    input = forms.CharField(
        label="Text",
        max_length=MAX_TEXT_CHARACTERS,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": "4"}),
        error_messages={"required": "Write what is to be said."},
    )
    voice = forms.ChoiceField(label="Voice", required=False, widget=forms.Select(attrs={"class": "form-select"}))
    instructions = forms.CharField(
        label="Instructions",
        required=False,
        max_length=INSTRUCTIONS_CHARACTERS,
        widget=forms.TextInput(attrs={**_PLAIN, "class": "form-control"}),
        help_text="How it is to sound, in words.",
    )
    seed = _number("Seed", "The same one gives the same sound. Blank: another each time.", -1, 1 << 53, whole=True)
    max_new_tokens = _number(
        "Longest", f"In frames of 0.08 s. Blank: {MAX_FRAMES:,}, which are 164 s.", 1, MAX_FRAMES, whole=True
    )
    temperature = _number("Temperature", "0 always takes the likeliest. Blank: 0.9.", 0, 100)
    top_k = _number("Top K", "0 switches it off. Blank: 50.", 0, 100_000, whole=True)
    top_p = _number("Top P", "Blank: 1.", 0, 1, above_minimum=True)
    repetition_penalty = _number("Repetition penalty", "Blank: 1.05.", 0, 100, above_minimum=True)

    NUMBERS = ("seed", "max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty")

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, model_type: str, voices: Sequence[str], chosen: str = ""
    ) -> None:
        super().__init__(data, auto_id="f-%s", initial={"voice": chosen})
        none = [] if model_type == CUSTOM_VOICE else [("", "None: the model's own")]
        self.fields["voice"].choices = [*none, *((name, name) for name in voices)]  # type: ignore[attr-defined]
        if model_type == BASE:
            del self.fields["instructions"]
        if model_type == VOICE_DESIGN:
            del self.fields["voice"]
            self.fields["instructions"].required = True
            self.fields["instructions"].error_messages["required"] = "This model makes a voice from a description."

    def body(self) -> dict[str, Any]:
        """The request. A WAV, since raw sound would hide what went wrong. Only for a valid form."""
        given = {name: self.cleaned_data.get(name) for name in ("voice", "instructions", *self.NUMBERS)}
        return {
            "input": self.cleaned_data["input"],
            "response_format": WAV,
            **{name: value for name, value in given.items() if value not in (None, "")},
        }


class AddressForm(_Form):
    """Where a server listens that no router runs."""

    url = forms.CharField(
        label="Address of its own",
        required=False,
        max_length=300,
        widget=forms.TextInput(attrs={**_PLAIN, "placeholder": "http://127.0.0.1:8080"}),
        help_text="As the host's worker reaches it. Empty: through the router.",
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, url: str) -> None:
        super().__init__(data, auto_id="f-%s", initial={"url": url})
