"""The editor's forms: what their controls hold, from stored values or from a post, and what that means.

The rows of the field catalogue are the form's fields. One text per control; a locked or unticked control sends nothing,
which is absent. The launch text keeps the bytes that are stored where only its line ends differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from models_app.core.fields import Field
from models_app.core.fields.field import MULTILINE
from models_app.core.state.checks import Limits
from models_app.core.state.overrides import is_none
from models_app.core.state.typed import Reading, control_text, read
from quartermaster_site.number_fields import posted_version as posted_version

INHERIT, NONE, OWN = "inherit", "none", "set"
"""Choices of a variant's control for a text that may be switched off; the sentinel itself is never typed."""


@dataclass(frozen=True)
class EditorForm:
    """A form of one model or variant. `typed` is the text of each control by key."""

    fields: Sequence[Field]
    limits: Limits
    stored: Mapping[str, Any]
    version: int
    typed: Mapping[str, str]
    locked: Mapping[str, str] = field(default_factory=dict)
    """Keys that a launch text owns, each with the flag."""
    on_variant: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    """What a save had against it, by key."""

    @cached_property
    def reading(self) -> Reading:
        return read([row for row in self.fields if row.key not in self.locked], self.typed, self.limits)

    @property
    def values(self) -> dict[str, Any]:
        """Values to save or to plan with; a locked field is cleared."""
        return {**{key: self._absent(key) for key in self.locked}, **self.reading.values}

    @cached_property
    def errors(self) -> dict[str, str]:
        return {**self.reading.errors, **self.refused}

    @cached_property
    def texts(self) -> dict[str, str]:
        """What was typed in one spelling: 8k as 8192. What cannot be read stays as it is."""
        values = self.reading.values
        return {
            row.key: control_text(row, values[row.key]) if row.key in values else self.typed.get(row.key, "")
            for row in self.fields
        }

    @cached_property
    def touched(self) -> set[str]:
        """Keys whose control does not hold what is stored."""
        stored = stored_texts(self.fields, self.stored)
        return {key for key, text in self.texts.items() if text != stored[key] and key not in self.locked}

    def _absent(self, key: str) -> Any:
        return next((row.absent for row in self.fields if row.key == key), None)

    def with_refusal(self, messages: Mapping[str, str]) -> EditorForm:
        return replace(self, refused=dict(messages))

    def with_version(self, version: int) -> EditorForm:
        return replace(self, version=version)


def stored_texts(fields: Sequence[Field], values: Mapping[str, Any]) -> dict[str, str]:
    """What the controls hold for stored values."""
    return {row.key: control_text(row, values.get(row.key, row.absent)) for row in fields}


def posted_texts(
    fields: Sequence[Field], posted: Mapping[str, str], stored: Mapping[str, Any], *, on_variant: bool = False
) -> dict[str, str]:
    """What a post says the controls hold, after its button: a pick, a reset of one field or of a group, a choice."""
    texts = {}
    for row in fields:
        text = str(posted.get(row.key, ""))
        if on_variant and row.sentinel:
            text = {INHERIT: "", NONE: NONE}.get(str(posted.get(f"{row.key}-mode", OWN)), text)
        if row.kind == MULTILINE:
            text = _same_bytes(text, stored.get(row.key) or "")
        elif row.trimmed:
            text = text.strip()
        if posted.get("reset") == row.key or posted.get("reset-group") == row.group:
            text = ""
        if posted.get(f"choose-{row.key}") == "saved":
            text = control_text(row, stored.get(row.key, row.absent))
        texts[row.key] = text
    picked, _, value = str(posted.get("pick", "")).partition("=")
    if picked in texts:
        texts[picked] = value
    return texts


def _same_bytes(text: str, stored: str) -> str:
    """Browsers send CR-LF; a text that differs from the stored one in nothing else is the stored one."""
    plain = text.replace("\r\n", "\n")
    return stored if plain == stored.replace("\r\n", "\n") else plain


def mode_of(row: Field, text: str) -> str:
    """Which of the three choices a variant's control shows."""
    if not text.strip():
        return INHERIT
    return NONE if row.sentinel and is_none(text) else OWN
