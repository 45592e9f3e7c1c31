"""A section of a host's settings as its page shows it: each control with its default and where its value is from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.urls import reverse

from gpus_app.models import Dialect, Host, HostSetting, OsFamily
from models_app.editor_form import EditorForm
from models_app.fleet_sections import FLEET_SECTIONS
from models_app.models import SpawnGuard
from models_app.pages.editor_page import Control, Facts, control_of
from models_app.section_form import FORM_SECTIONS

_ELSEWHERE = (("Memory", "models:host-memory"), ("Devices", "models:host-gpu"))
_OTHER_ROUTER = {
    "guards": "Only the Quartermaster router guards itself; the router of this host does not read these.",
    "kv": "Only the Quartermaster router keeps a slot cache. The router of this host gets the KV type alone.",
}
_SPAWN_GUARD = (
    "llama-swap guards nothing itself. With the spawn guard on, each start of a model looks at what is free then, and"
    " Least share on the GPU holds; the other settings here are read by the Quartermaster router alone."
)


@dataclass(frozen=True, slots=True)
class SectionTab:
    title: str
    url: str
    current: bool


def section_tabs(host: Host, current: str) -> list[SectionTab]:
    """All settings of a host, section by section."""
    tabs = [SectionTab(title, reverse(name, args=[host.slug]), False) for title, name in _ELSEWHERE]
    return tabs + [
        SectionTab(FLEET_SECTIONS[name].title, reverse(f"models:host-{name}", args=[host.slug]), name == current)
        for name in (*FORM_SECTIONS, "groups")
    ]


def section_controls(form: EditorForm, facts: Facts, stored: HostSetting) -> list[Control]:
    """The controls of a form. `facts.automatic` are the defaults."""
    return [_control(control_of(form, field, facts), form, stored) for field in form.fields]


def _control(control: Control, form: EditorForm, stored: HostSetting) -> Control:
    if control.key in form.touched:
        origin = "not saved yet"
    elif control.text:
        origin = f"set here · {stored.changed_by}" if stored.changed_by else "set here"
    else:
        origin = "default"
    if control.text and control.automatic:
        origin = f"{origin}; default: {control.automatic}"
    options = tuple(replace(option, text=option.text.replace("Automatic", "Default")) for option in control.options)
    return replace(control, origin=origin, automatic="", options=options)


def _guard_place(host: Host) -> str:
    """Where the host has its spawn guard, or why commands will not begin with it."""
    if host.os_family == OsFamily.WINDOWS:
        return "On Windows there is none: a program there cannot become another one."
    place: SpawnGuard | None = getattr(host, "spawn_guard", None)
    if place is None or not place.program:
        return "Where this host has it is not known yet: its next scan says so."
    return f"This host has it at {place.program}."


def router_note(host: Host, section: str) -> str:
    """What the host's router does not take from a section, "" where it takes all."""
    if (host.publish_dialect, section) == (Dialect.LLAMA_SWAP, "guards"):
        return f"{_SPAWN_GUARD} {_guard_place(host)}"
    return "" if host.publish_dialect == Dialect.QUARTERMASTER else _OTHER_ROUTER.get(section, "")
