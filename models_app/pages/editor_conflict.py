"""Two people saved the same form: what differs, in three columns, with a choice per field (web.md W-043)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models_app.core.state.typed import control_text
from models_app.editor_form import EditorForm
from quartermaster_site.errors import EditConflict

AUTOMATIC = "automatic"
_MOST_SHOWN = 300


@dataclass(frozen=True, slots=True)
class ConflictLine:
    """`keep_saved` says that the person did not touch this field: the saved value is the one to keep."""

    key: str
    label: str
    yours: str
    saved: str
    original: str
    keep_saved: bool


@dataclass(frozen=True, slots=True)
class EditorConflict:
    by: str
    at: Any
    lines: tuple[ConflictLine, ...]


def editor_conflict(form: EditorForm, error: EditConflict, original: Mapping[str, Any] | None) -> EditorConflict:
    """The fields where what was typed and what was saved differ. `original` is None where it is not known any more."""
    lines = []
    for row in form.fields:
        yours = form.texts[row.key]
        saved = control_text(row, error.saved.get(row.key, row.absent))
        if yours == saved or row.key in form.locked:
            continue
        before = "" if original is None else control_text(row, original.get(row.key, row.absent))
        lines.append(
            ConflictLine(
                key=row.key,
                label=row.label,
                yours=_shown(yours),
                saved=_shown(saved),
                original="not known" if original is None else _shown(before),
                keep_saved=original is not None and yours == before,
            )
        )
    return EditorConflict(error.by, error.at, tuple(lines))


def _shown(text: str) -> str:
    if not text:
        return AUTOMATIC
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
