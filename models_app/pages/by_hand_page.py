"""What people declare by hand for a host, as a page lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpus_app.models import Host, HostSetting
from models_app.core.fields.field import Field
from models_app.editor_form import EditorForm
from models_app.models import Fragment, Row
from models_app.pages.editor_page import Control, Facts, control_of
from models_app.services import by_hand
from quartermaster_site.access.redaction import redact

TOP = "(top)"
"""How the keys at the top of a file are called where an id is wanted."""
_FIRST_WORDS = 90
_OF_ENTRY = ("estVramGB", "estRamGB")


@dataclass(frozen=True, slots=True)
class HandLine:
    """One row of a list: what it is called, what it says, and whether something about it needs a look."""

    name: str
    text: str
    note: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class HandPart:
    """One list of the page. `kind` is the word in its addresses."""

    kind: str
    title: str
    about: str
    lines: tuple[HandLine, ...]
    empty: str
    may_change: bool
    needs: str
    """The role that changing it needs."""


def enhancer_lines(host: Host, section: HostSetting) -> tuple[HandLine, ...]:
    """The texts of prompt enhancers, each with whether its model is served here."""
    served = {name.lower() for name in Row.objects.filter(host=host).values_list("served_id", flat=True)}
    return tuple(_enhancer_line(item, served) for item in by_hand.items_of(section, by_hand.ENHANCERS))


def _enhancer_line(item: Mapping[str, Any], served: set[str]) -> HandLine:
    model = str(item.get("model", ""))
    words = " ".join(str(item.get("systemPrompt", "")).split())
    text = words[:_FIRST_WORDS] + ("…" if len(words) > _FIRST_WORDS else "")
    extras = [str(item["name"])] if item.get("name") else []
    extras += ["sees the picture"] if item.get("vision") else []
    unknown = model.lower() not in served
    note = "no model of this host has that id" if unknown else " · ".join(extras)
    return HandLine(model, text, note, "warn" if unknown else "")


def declared_lines(section: HostSetting) -> tuple[HandLine, ...]:
    return tuple(
        HandLine(str(item.get("name", "")), str(item.get("modelPath", "")), str(item.get("modelFlag", "") or "-m"))
        for item in by_hand.items_of(section, by_hand.DECLARED)
    )


def entry_lines(entries: list[Fragment]) -> tuple[HandLine, ...]:
    """Commands of entries, secrets masked."""
    return tuple(
        HandLine(
            entry.served_id,
            str(redact(" ".join(str(entry.fields["cmd"]).split()))),
            ", ".join(f"{key} {entry.fields[key]}" for key in _OF_ENTRY if key in entry.fields),
        )
        for entry in entries
    )


def raw_lines(fragments: list[Fragment]) -> tuple[HandLine, ...]:
    """Keys kept by hand with their authors; the top of the file has no id."""
    return tuple(
        HandLine(row.served_id or TOP, ", ".join(row.fields), str(row.changed_by or "somebody")) for row in fragments
    )


def hand_controls(form: EditorForm, facts: Facts, fields: tuple[Field, ...]) -> list[Control]:
    return [control_of(form, row, facts) for row in fields]
