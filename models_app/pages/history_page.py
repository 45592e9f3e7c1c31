"""The History tab: each save with the fields before and after it, and what may be brought back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    "bulk": "changed several models at once",
    "import": "imported settings",
    "follow": "gave up the settings of its own",
}
_SHARED_WORDS = {
    "save": "changed",
    "restore": "restored an earlier state of",
    "add": "added",
    "delete": "deleted",
    "move": "moved",
    "import": "imported",
}
_NO_STATE = frozenset({"delete", "follow", "move"})
"""What leaves nothing that could be brought back, or changes no setting."""
_LABELS = {"position": "Place among the rules", "name": "Name"}


@dataclass(frozen=True, slots=True)
class ChangedField:
    key: str
    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """`version` is what a restore at `restore_url` starts from, which is blank where there is nothing to bring back."""

    pk: int
    who: str
    at: Any
    what: str
    name: str
    """Of the variant or the rule that it is about, blank for the model's own settings."""
    fields: tuple[ChangedField, ...]
    version: int
    is_latest: bool
    restore_url: str


def history(
    changes: Iterable[Change],
    versions: Mapping[str, int],
    only: str = "",
    *,
    address: Callable[[int], str],
    shown: Callable[[str], str] = str,
) -> list[HistoryEntry]:
    """The entries, the newest first. `versions` has the version in force by variant name, "" for the model itself.

    `only` keeps the changes of one field. `address` gives where a change is restored, `shown` a value as it may be
    read.
    """
    seen: set[str] = set()
    renamed: dict[str, str] = {}  # former name of a variant -> its name now, for the older changes
    entries = []
    for change in changes:
        name = renamed.get(subject_of(change), subject_of(change))
        is_state = change.action not in _NO_STATE
        fields = tuple(_changed(key, pair, shown) for key, pair in change.changes.items() if not only or key == only)
        if fields or not only:
            entries.append(
                HistoryEntry(
                    pk=change.pk,
                    who=change.actor,
                    at=change.at,
                    what=_what(change),
                    name=f"{change.match} {change.quant}".strip() if change.rule else change.variant,
                    fields=fields,
                    version=versions.get(name, 0),
                    is_latest=is_state and name not in seen,
                    restore_url=address(change.pk) if is_state and name in seen else "",
                )
            )
        if change.action != "move":
            seen.add(name)
        if change.action == "rename":
            renamed[str(change.changes["name"][0]).lower()] = name
        elif change.action == "add":
            renamed.pop(subject_of(change), None)
    return entries


def subject_of(change: Change) -> str:
    """What a change is about: `rule 7`, the name of a variant in lower case, or "" for a model's own settings."""
    return f"rule {change.rule}" if change.rule else change.variant.lower()


def _what(change: Change) -> str:
    if change.rule or not change.match:
        kind = "the rule" if change.rule else "the shared variant"
        return f"{_SHARED_WORDS.get(change.action, change.action)} {kind}"
    return _WORDS.get(change.action, change.action)


def field_choices(changes: Iterable[Change]) -> list[tuple[str, str]]:
    """(key, label) of every field that ever changed, by label."""
    keys = {key for change in changes for key in change.changes}
    return sorted(((key, field_label(key)) for key in keys), key=lambda pair: pair[1])


def _changed(key: str, pair: Iterable[Any], shown: Callable[[str], str]) -> ChangedField:
    before, after = (shown(shown_value(key, value)) for value in pair)
    return ChangedField(key, field_label(key), before, after)


def field_label(key: str) -> str:
    """What pages call a field."""
    return _FIELDS[key].label if key in _FIELDS else _LABELS.get(key, key)


def shown_value(key: str, value: Any) -> str:
    """A stored value as a page shows it, secrets masked."""
    if value is None:
        return AUTOMATIC
    if key == "variants":
        return ", ".join(str(item.get("name", "")) for item in value)
    field = _FIELDS.get(key)
    return str(redact(control_text(field, value) if field else str(value))) or AUTOMATIC
