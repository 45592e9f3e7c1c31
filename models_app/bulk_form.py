"""The form of a bulk edit: which models, and up to four settings with their new values as texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from models_app.core.fields import OVERRIDE_FIELDS, Field
from models_app.core.fields.groups import ARGUMENT_KEYS, GROUPS, grouped

LINES = (1, 2, 3, 4)
MOST_CHARACTERS = 1000
EVERYTHING = "*"
"""In place of a key: every setting of a model becomes automatic."""
_NOT_HERE = frozenset({"match", "quant", "variants", "servedId", *ARGUMENT_KEYS})
"""What is one model's own, or a grant of its own."""


@dataclass(frozen=True, slots=True)
class BulkForm:
    """`versions`: key of a row -> the version of what was pinned for it. `lines`: (key, text) as they stand."""

    versions: Mapping[int, int]
    lines: tuple[tuple[str, str], ...] = (("", ""),) * len(LINES)
    problem: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    """Key -> text of the settings that are chosen; a blank text is automatic."""

    @property
    def rows(self) -> str:
        """The models and their versions as the form carries them."""
        return ",".join(f"{pk}:{version}" for pk, version in self.versions.items())


def bulk_fields(model_classes: Collection[str]) -> dict[str, list[Field]]:
    """Title of a group -> its settings that models of these classes may have."""
    fields = [
        field
        for field in OVERRIDE_FIELDS
        if field.key not in _NOT_HERE and (not field.classes or set(field.classes) & set(model_classes))
    ]
    return {GROUPS[slug]: found for slug, found in grouped(fields).items()}


def posted_bulk(posted: Mapping[str, str]) -> BulkForm:
    """What a post says; `problem` where nothing can be done with it."""
    versions = dict(pair for text in str(posted.get("rows", "")).split(",") if (pair := _numbers(text)))
    lines = tuple((str(posted.get(f"key-{n}", "")), str(posted.get(f"value-{n}", ""))) for n in LINES)
    chosen = [(key, text.strip()) for key, text in lines if key]
    allowed = {field.key for field in OVERRIDE_FIELDS} - _NOT_HERE | {EVERYTHING}
    return BulkForm(versions, lines, _problem(chosen, allowed), dict(chosen))


def _problem(chosen: list[tuple[str, str]], allowed: Collection[str]) -> str:
    keys = [key for key, _ in chosen]
    if not keys:
        return "Choose at least one setting."
    if len(set(keys)) < len(keys):
        return "Choose each setting once."
    if EVERYTHING in keys and len(keys) > 1:
        return "“All settings automatic” stands alone."
    if not set(keys) <= set(allowed):
        return "There is no such setting here."
    if any(len(text) > MOST_CHARACTERS for _, text in chosen):
        return f"A value may have {MOST_CHARACTERS:,} characters."
    return ""


def _numbers(text: str) -> tuple[int, int] | None:
    left, _, right = text.partition(":")
    if all(part.isascii() and part.isdigit() and len(part) < 10 for part in (left, right)):
        return int(left), int(right)
    return None
