"""The History tab: each save with the fields before and after it, and what may be brought back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from models_app.core.fields import MODEL_FIELDS
from models_app.core.state.typed import control_text
from models_app.models import Change
from quartermaster_site.access.redaction import redact

AUTOMATIC = "automatic"
_FIELDS = {field.key: field for field in MODEL_FIELDS}
_WORDS = {
    "save": "changed settings",
    "reset": "reset all settings",
    "restore": "restored an earlier state",
    "add": "added the variant",
    "rename": "renamed the variant",
    "delete": "deleted the variant",
    "adopt": "kept a what-if",
}


@dataclass(frozen=True, slots=True)
class ChangedField:
    key: str
    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """`version` is what a restore starts from; `is_current` says that this state is the one in force."""

    pk: int
    who: str
    at: Any
    what: str
    variant: str
    fields: tuple[ChangedField, ...]
    version: int
    is_current: bool


def history(changes: Iterable[Change], versions: Mapping[str, int], only: str = "") -> list[HistoryEntry]:
    """The entries, the newest first. `versions` has the version in force by variant name, "" for the model itself.

    `only` keeps the changes of one field.
    """
    seen: set[str] = set()
    entries = []
    for change in changes:
        name = change.variant.lower()
        fields = tuple(_changed(key, *pair) for key, pair in change.changes.items() if not only or key == only)
        if fields or not only:
            entries.append(
                HistoryEntry(
                    pk=change.pk,
                    who=change.actor,
                    at=change.at,
                    what=_WORDS.get(change.action, change.action),
                    variant=change.variant,
                    fields=fields,
                    version=versions.get(name, 0),
                    is_current=name not in seen or change.action == "delete",
                )
            )
        seen.add(name)
    return entries


def field_choices(changes: Iterable[Change]) -> list[tuple[str, str]]:
    """(key, label) of every field that ever changed, by label."""
    keys = {key for change in changes for key in change.changes}
    return sorted(((key, _label(key)) for key in keys), key=lambda pair: pair[1])


def _changed(key: str, before: Any, after: Any) -> ChangedField:
    return ChangedField(key, _label(key), _shown(key, before), _shown(key, after))


def _label(key: str) -> str:
    return _FIELDS[key].label if key in _FIELDS else key


def _shown(key: str, value: Any) -> str:
    if value is None:
        return AUTOMATIC
    field = _FIELDS.get(key)
    return str(redact(control_text(field, value) if field else str(value))) or AUTOMATIC
