"""The memory form of a host with, beside each field, where the value in use comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.forms import BoundField

from gpus_app.forms import KEYS, MemoryForm
from gpus_app.memory_settings import DEFAULTS, MemorySettings
from quartermaster_site.errors import EditConflict
from quartermaster_site.figures import UNKNOWN

_PROPOSED = {
    "targetVramGB": "proposed: the most ever seen free on the devices that planning uses",
    "maxRamGB": "proposed: available RAM",
}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """What `components/_setting.html` prints beside a field."""

    field: BoundField
    set: bool
    origin: str
    automatic: str = ""
    reset: bool = False
    picks: tuple[Any, ...] = ()
    warning: str = ""


@dataclass(frozen=True, slots=True)
class ConflictLine:
    label: str
    yours: str
    saved: str
    original: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two people saved: what differs, field by field."""

    by: str
    at: Any
    lines: tuple[ConflictLine, ...]


def memory_rows(form: MemoryForm, memory: MemorySettings) -> list[SettingRow]:
    return [
        SettingRow(
            field=form[key],
            set=key in memory.values,
            origin=_origin(key, memory),
            warning=memory.warnings.get(key, ""),
        )
        for key in KEYS
    ]


def _origin(key: str, memory: MemorySettings) -> str:
    if key in memory.values:
        by = f" · {memory.changed_by}" if memory.changed_by else ""
        return f"set here{by}"
    return _PROPOSED.get(key, f"default: {_text(DEFAULTS.get(key))}")


def originals(memory: MemorySettings) -> dict[str, str]:
    """What is stored now, carried along by the form: after a conflict it is the state before both saves."""
    return {key: _text(memory.values[key]) for key in KEYS if key in memory.values}


def memory_conflict(form: MemoryForm, error: EditConflict, original: Mapping[str, str]) -> Conflict:
    """The fields where the person's values and the saved ones differ."""
    labels = {key: str(form.fields[key].label) for key in KEYS}
    return conflict_of(labels, form.cleaned_data, error.saved, original, error)


def conflict_of(
    labels: Mapping[str, str],
    yours: Mapping[str, Any],
    saved: Mapping[str, Any],
    original: Mapping[str, str],
    error: EditConflict,
) -> Conflict:
    """Fields by key: those where two people's values differ."""
    lines = []
    for key, label in labels.items():
        mine, theirs = _text(yours.get(key)), _text(saved.get(key))
        if mine != theirs:
            lines.append(ConflictLine(label, mine, theirs, original.get(key, "") or UNKNOWN))
    return Conflict(error.by, error.at, tuple(lines))


def _text(value: Any) -> str:
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
