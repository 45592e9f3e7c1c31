"""The device section of a host as a form: the fields of the catalogue, and a reserve for each device that was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from django import forms

from gpus_app.core.gpu_set import FIRST, LAST, NEVER
from gpus_app.device_settings import PREFERENCE, RESERVE, DeviceSettings
from gpus_app.models import Device
from models_app.core.fields import PATCH_FIELDS
from models_app.core.fields.field import CHOICE, SWITCH, Field
from quartermaster_site.errors import Refused
from quartermaster_site.figures import GIB, gib
from quartermaster_site.number_fields import NumberField

CATALOGUE: Mapping[str, Field] = {field.key: field for field in PATCH_FIELDS if field.group == "gpu"}
_LONGER_HELP = {
    "multiGpu": "Off: plans use one card alone, the largest of those that come first.",
    "minGpuVramGB": "Cards with less are left out; memory shared with the host counts where it is pooled.",
    "sharedMemory": "Automatic counts it for integrated GPUs, whose own memory it is, and not for cards.",
    "poolIntegratedGpu": "Otherwise an integrated GPU counts only where there is no card.",
}


def reserve_key(index: int) -> str:
    """The name of the form field of a device's reserve."""
    return f"reserve-{index}"


def preference_key(index: int) -> str:
    """The name of the form field that says when a device is used."""
    return f"use-{index}"


PREFERENCE_WORDS = {"": "as usual", FIRST: "first", LAST: "last", NEVER: "never"}


class DeviceForm(forms.Form):
    """Every value may be left empty, which means the default."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, stored: DeviceSettings, devices: Sequence[Device]
    ) -> None:
        self.stored, self.devices = stored, devices
        super().__init__(data, auto_id="f-%s", initial={**initial_of(stored.values), "version": stored.version})
        self.fields.update({key: _control(field) for key, field in CATALOGUE.items()})
        for device in devices:
            self.fields[reserve_key(device.index)] = _reserve(device)
            self.fields[preference_key(device.index)] = _preference(device)

    @property
    def keys(self) -> list[str]:
        own = ((reserve_key(device.index), preference_key(device.index)) for device in self.devices)
        return [*CATALOGUE, *chain.from_iterable(own)]

    def values(self) -> dict[str, Any]:
        """What `save_device_settings` takes. What is set for devices that are not there now is kept."""
        values = {key: self.cleaned_data[key] for key in CATALOGUE if self.cleaned_data.get(key) not in (None, "")}
        own = {RESERVE: self._by_device(RESERVE, reserve_key), PREFERENCE: self._by_device(PREFERENCE, preference_key)}
        return {**values, **own}

    def _by_device(self, setting: str, key_of: Callable[[int], str]) -> dict[str, Any]:
        here = {str(device.index): self.cleaned_data.get(key_of(device.index)) for device in self.devices}
        away = {index: value for index, value in self.stored.values.get(setting, {}).items() if index not in here}
        return away | {index: value for index, value in here.items() if value}

    def with_version(self, version: int) -> None:
        """Have the form carry another version: the one that was saved meanwhile."""
        self.data = {**{key: self.data.get(key, "") for key in self.data}, "version": str(version)}

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)


def default_data(version: int) -> dict[str, str]:
    """What a form posts that sets nothing."""
    switches = {key: "on" for key, field in CATALOGUE.items() if field.kind == SWITCH and field.default}
    return {**switches, "version": str(version)}


def initial_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Stored values under the names of the form."""
    switches = {key: values.get(key, field.default) for key, field in CATALOGUE.items() if field.kind == SWITCH}
    typed = {key: values[key] for key in ("minGpuVramGB", "sharedMemory") if key in values}
    numbers = {key: f"{value:g}" if isinstance(value, float) else value for key, value in typed.items()}
    reserves = {reserve_key(int(index)): f"{size:g}" for index, size in values.get(RESERVE, {}).items()}
    preferences = {preference_key(int(index)): word for index, word in values.get(PREFERENCE, {}).items()}
    return {**switches, **numbers, **reserves, **preferences}


def _control(field: Field) -> forms.Field:
    help_text = _LONGER_HELP.get(field.key, field.help)
    if field.kind == SWITCH:
        return forms.BooleanField(label=field.label, help_text=help_text, required=False)
    if field.kind == CHOICE:
        choices = [("", "automatic"), *((value, value) for value in field.choices if value != field.default)]
        return forms.ChoiceField(
            label=field.label,
            help_text=help_text,
            choices=choices,
            required=False,
            widget=forms.Select(attrs={"class": "form-select"}),
            error_messages={"invalid_choice": f"{field.label} takes one of {', '.join(field.choices)}."},
        )
    return NumberField(
        label=field.label,
        help_text=help_text,
        unit=field.unit,
        minimum=field.minimum,
        maximum=field.maximum,
        required=False,
        empty_means="the default",
        widget=_text(f"{field.default:g}" if isinstance(field.default, float) else ""),
    )


def _reserve(device: Device) -> NumberField:
    most = device.total_bytes + (device.shared_total_bytes if device.integrated else 0)
    return NumberField(
        label=f"Leave to others on GPU {device.index}",
        help_text=f"{device.name}, {gib(most)} GiB. What others use already is part of it.",
        unit="GiB",
        minimum=0,
        maximum=-(-most // GIB),
        required=False,
        empty_means="nothing",
        widget=_text("0"),
    )


def _preference(device: Device) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=f"Use GPU {device.index}",
        help_text="First: what fits there stays there, one-device programs too. Last: only what others cannot hold.",
        choices=list(PREFERENCE_WORDS.items()),
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
    )


def _text(placeholder: str) -> forms.TextInput:
    return forms.TextInput(attrs={"placeholder": placeholder, "class": "form-control q-n"})
