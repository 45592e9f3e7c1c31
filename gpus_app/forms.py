"""The memory section of a host as a form: text in, the keys of the section out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from gpus_app.memory_settings import MOST_GIB, MOST_SECONDS, MemorySettings
from quartermaster_site.errors import Refused
from quartermaster_site.number_fields import NumberField

KEYS = ("targetVramGB", "maxRamGB", "vramOverheadGB", "ttlSec", "autoVram")


class MemoryForm(forms.Form):
    """Every number may be left empty, which means automatic or the default."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(self, data: Mapping[str, Any] | None = None, *, memory: MemorySettings) -> None:
        self.memory = memory
        typed = {key: _typed(memory.values.get(key)) for key in KEYS}
        initial: dict[str, Any] = {**typed, "autoVram": memory.auto_vram, "version": memory.version}
        super().__init__(data, auto_id="f-%s", initial=initial)
        self.fields.update(_fields(memory))

    def values(self) -> dict[str, Any]:
        """What `save_memory_settings` takes: set keys only. A target typed by hand switches the automatic one off."""
        values = {key: self.cleaned_data[key] for key in KEYS if self.cleaned_data.get(key) not in (None, "")}
        if self.cleaned_data.get("targetVramGB") is not None and "targetVramGB" in self.changed_data:
            values["autoVram"] = False
        return values

    def with_version(self, version: int) -> None:
        """Have the form carry another version: the one that was saved meanwhile."""
        self.data = {**{key: self.data.get(key, "") for key in self.data}, "version": str(version)}

    def take_refusal(self, error: Refused) -> None:
        """Show the messages of a service beside the fields they are about."""
        for key, text in error.fields.items():
            self.add_error(key if key in self.fields else None, text)


def _typed(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _fields(memory: MemorySettings) -> dict[str, forms.Field]:
    seen = f" The devices seen have {memory.capacity_gib:g} GiB together; more is kept, with a warning."
    capacity = seen if memory.capacity_gib else ""
    installed = f" {memory.ram_total_gib:g} GiB are fitted." if memory.ram_total_gib else ""
    return {
        "targetVramGB": _size(
            "VRAM target",
            f"{memory.target_in_use_gib:g}" if memory.target_in_use_gib else "no GPU seen",
            f"All devices together; plans never use more.{capacity}",
        ),
        "autoVram": forms.BooleanField(
            label="Follow free VRAM",
            required=False,
            help_text="Caps the target at the most VRAM ever seen free here. A target typed above switches it off.",
        ),
        "maxRamGB": _size(
            "RAM limit",
            f"{memory.ram_in_use_gib:g}",
            f"For layers, experts and caches that stay in RAM.{installed}",
        ),
        "vramOverheadGB": _size(
            "Headroom",
            f"{memory.overhead_gib:g}",
            "Added to every plan, for the desktop and for drift.",
            above_minimum=False,
            empty_means="the default",
        ),
        "ttlSec": NumberField(
            label="Unload when idle for",
            unit="seconds",
            minimum=0,
            maximum=MOST_SECONDS,
            whole=True,
            required=False,
            empty_means="the default",
            widget=_text(str(memory.ttl_seconds)),
            help_text="0 = never.",
        ),
    }


def _size(
    label: str, placeholder: str, text: str, *, above_minimum: bool = True, empty_means: str = "automatic"
) -> NumberField:
    """An amount of memory; `placeholder` is what holds while it is empty."""
    return NumberField(
        label=label,
        unit="GiB",
        minimum=0,
        above_minimum=above_minimum,
        maximum=MOST_GIB,
        required=False,
        empty_means=empty_means,
        widget=_text(placeholder),
        help_text=text,
    )


def _text(placeholder: str) -> forms.TextInput:
    return forms.TextInput(attrs={"placeholder": placeholder, "class": "form-control q-n"})
