"""The difference of two revisions as pages show it: a summary line, models with their fields and causes, filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from models_app.core.export import presets
from models_app.core.export.revisions.compare import FieldChange, Kind, ModelChange
from models_app.core.export.revisions.effects import Effect
from models_app.core.export.revisions.outline import GUARD
from models_app.core.fields import MODEL_FIELDS
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.spawn_guard.options import PROGRAM
from models_app.pages.causes_text import ModelCauses, host_causes
from models_app.selectors.comparing import Comparison
from models_app.selectors.entry_sight import Seen
from models_app.services.seen_changes import unseen_text
from quartermaster_site.access.redaction import redact
from quartermaster_site.figures import counted

FIRST = 200
"""Models of a page before somebody asks for all."""
MOST = 5000
KINDS: Mapping[Kind, tuple[str, str, str]] = {
    "changed": ("changed", "act", "changed"),
    "renamed": ("renamed", "act", "changed"),
    "added": ("added", "ok", "ok"),
    "removed": ("removed", "bad", "x"),
}
"""Kind -> word, tone, icon."""
LABELS = {
    "ctx-size": "Context",
    "n-gpu-layers": "Layers on GPU",
    "model": "Model file",
    "port": "Port",
    GUARD: "Spawn guard",
}
_KNOBS = {field.key: field.label for field in MODEL_FIELDS}
_WINDOW_KEY = "capabilities.context"
FEWEST_ALIKE = 5
MOST_ALIKE = 10


@dataclass(frozen=True, slots=True)
class FieldLine:
    """`name` is the flag or key as it stands in the file; None for a side where there is nothing."""

    label: str
    name: str
    before: str | None
    after: str | None
    is_list: bool


@dataclass(frozen=True, slots=True)
class ModelLine:
    id: str
    was_id: str
    url: str
    word: str
    tone: str
    shape: str
    facts: str
    fields: tuple[FieldLine, ...]
    more: int
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    text: str
    url: str
    on: bool


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """Ready to print. `hidden` models match but are not shown; `all_url` shows them."""

    summary: str
    chips: tuple[Chip, ...]
    models: tuple[ModelLine, ...]
    matching: int
    hidden: int
    all_url: str
    alike: tuple[tuple[FieldLine, str], ...]
    """Differences that many models share, with their number in words: their own lines leave them out."""
    top: tuple[FieldLine, ...]
    causes: tuple[str, ...]
    causes_known: bool
    effect: str
    effect_models: tuple[str, ...]
    effect_stops: bool
    is_empty: bool
    show: str
    query: str
    unseen: str
    """How many changes the person does not see, in words."""


def difference_view(seen: Seen, asked: Mapping[str, str]) -> DifferenceView:
    """`asked`: `show` is a kind, `q` a part of an id or path, `all` is set to show every model."""
    comparison = seen.comparison
    show, query = asked.get("show", ""), asked.get("q", "")[:200].strip()
    difference = comparison.difference
    wanted = [model for model in difference.models if _matches(model, show, query)]
    most = MOST if asked.get("all") else FIRST
    causes = ModelCauses(comparison)
    alike = shared_changes(wanted)
    dialect = comparison.after.dialect
    return DifferenceView(
        summary=summary(comparison),
        chips=_chips(comparison, show, query),
        models=tuple(_model_line(model, comparison, causes, alike) for model in wanted[:most]),
        matching=len(wanted),
        hidden=max(0, len(wanted) - most),
        all_url="?" + urlencode({key: value for key, value in (("show", show), ("q", query), ("all", "1")) if value}),
        alike=tuple((_field_line(field, dialect), counted(count, "model")) for field, count in alike.items()),
        top=tuple(_field_line(field, presets.SLUG) for field in difference.top),
        causes=host_causes(comparison),
        causes_known=comparison.causes.known,
        effect=effect_text(comparison.effect, comparison.after.dialect, had_file=comparison.before is not None),
        effect_models=comparison.effect.models[:50] if comparison.effect.stops != "all" else (),
        effect_stops=comparison.effect.stops != "none" and comparison.before is not None,
        is_empty=difference.is_empty and not seen.unseen,
        show=show,
        query=query,
        unseen=unseen_text(seen.unseen) if seen.unseen else "",
    )


def shared_changes(models: Sequence[ModelChange]) -> dict[FieldChange, int]:
    """Differences that are the same in many models, the most frequent first."""
    counts = Counter(field for model in models for field in model.fields)
    return {field: count for field, count in counts.most_common(MOST_ALIKE) if count >= FEWEST_ALIKE}


def summary(comparison: Comparison) -> str:
    """ "4 models changed, 1 added, 1 removed; 2 other keys"; with no difference, that."""
    difference = comparison.difference
    parts: list[str] = []
    for kind, (word, _, _) in KINDS.items():
        if number := difference.of(kind):
            parts.append(f"{counted(number, 'model') if not parts else f'{number:,}'} {word}")
    text = ", ".join(parts) or "No model changes"
    return f"{text}; {counted(len(difference.top), 'other key')}" if difference.top else text


def effect_text(effect: Effect, dialect: str, *, had_file: bool) -> str:
    """What happens to running models, in the words of the router's own rules."""
    if not had_file:
        return "Nothing was written by Quartermaster before: what the router runs now is not known."
    if effect.stops == "all":
        return "llama-swap stops every running model when it reads the new file."
    if dialect == presets.SLUG:
        if effect.stops == "none":
            return "No running model stops: no section of a known model changes."
        return f"When llama-server reads it, {counted(len(effect.models), 'model')} would stop if running:"
    if not effect.models:
        return "No running model is affected."
    return f"No running model stops; {counted(len(effect.models), 'model')} get new arguments at the next load:"


def _matches(model: ModelChange, show: str, query: str) -> bool:
    if show in KINDS and model.kind != show:
        return False
    text = f"{model.id}\n{model.was_id}\n{model.path}".lower()
    return query.lower() in text


def _chips(comparison: Comparison, show: str, query: str) -> tuple[Chip, ...]:
    difference = comparison.difference
    numbers: list[tuple[str, str, int]] = [("", "All", len(difference.models))]
    numbers += [(kind, word.capitalize(), difference.of(kind)) for kind, (word, _, _) in KINDS.items()]
    return tuple(
        Chip(
            f"{word} {number:,}", "?" + urlencode({"show": kind, "q": query} if query else {"show": kind}), kind == show
        )
        for kind, word, number in numbers
        if number or not kind
    )


def _model_line(
    model: ModelChange, comparison: Comparison, causes: ModelCauses, alike: Collection[FieldChange]
) -> ModelLine:
    word, tone, shape = KINDS[model.kind]
    row = comparison.rows.get(model.path)
    return ModelLine(
        id=model.id,
        was_id=model.was_id,
        url=reverse("models:model-show", args=[row]) if row else "",
        word=word,
        tone=tone,
        shape=shape,
        facts=_facts(model),
        fields=tuple(
            _field_line(field, comparison.after.dialect) for field in _own_fields(model) if field not in alike
        ),
        more=model.more,
        causes=causes.of(model),
    )


def _own_fields(model: ModelChange) -> list[FieldChange]:
    """Without what only repeats a flag: the window stands in the command and among the capabilities."""
    windows = {(field.before, field.after) for field in model.fields if field.name == "ctx-size"}
    return [field for field in model.fields if field.name != _WINDOW_KEY or (field.before, field.after) not in windows]


def _facts(model: ModelChange) -> str:
    """Window and estimates of a model that came or went, and of one that changed as it will be."""
    parts = [f"context {_number(model.context)}"] if model.context else []
    for name, value in (("VRAM", model.vram_gb), ("RAM", model.ram_gb)):
        if value:
            parts.append(f"{name} {value:.2f} GiB")
    return " · ".join(parts)


def _field_line(field: FieldChange, dialect: str) -> FieldLine:
    name = _label(field) if field.kind == "estimate" else field.name
    if name == GUARD:
        name = PROGRAM
    elif field.kind == "flag" and dialect != presets.SLUG and name and not name.startswith("-"):
        name = f"--{name}"
    before, after = (_value(field, value) for value in (field.before, field.after))
    return FieldLine(_label(field), name, before, after, field.is_list)


def _label(field: FieldChange) -> str:
    if field.kind == "estimate":
        return f"{field.name} estimate"
    if field.kind == "program":
        return "Program"
    known = LABELS.get(field.name)
    row = LLAMA.lookup(f"--{field.name.lstrip('-')}") if field.kind == "flag" else None
    return known or (_KNOBS.get(row.knob, "") if row else "")


def _value(field: FieldChange, value: str | None) -> str | None:
    if value is None:
        return None
    if field.kind == "estimate":
        return f"{value} GiB"
    if value == "":
        return None if field.is_list else "on"
    masked = redact({field.name: value})[field.name]
    return _number(str(masked))


def _number(text: str) -> str:
    """A large whole number with separators."""
    return f"{int(text):,}" if text.isascii() and text.isdigit() and len(text) < 16 else text
