"""What differs between two outlines, per model (web.md 11.3). Pure, in a fixed order, every list bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from models_app.core.export.revisions.outline import ModelOutline, Outline, Value

Kind = Literal["added", "removed", "renamed", "changed"]
KINDS: tuple[Kind, ...] = ("changed", "renamed", "added", "removed")
MAX_FIELDS = 60
"""Differences told of one model, and of the keys beside the models."""
MAX_TEXT = 300
MAX_ITEMS = 12
_OWN_NAME = ("alias", "--alias", "-a")
"""Flags that repeat the model's id: a renamed model may differ in them."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One difference. `before` or `after` is None where there is nothing on that side.

    Of a list only the items that went (`before`) and that came (`after`) are given.
    """

    kind: Literal["flag", "key", "program", "estimate"]
    name: str
    before: str | None
    after: str | None
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One served id. `fields` of an added or a removed model are empty."""

    id: str
    kind: Kind
    fields: tuple[FieldChange, ...] = ()
    was_id: str = ""
    """The id of a renamed model before."""
    path: str = ""
    more: int = 0
    """Differences beyond `MAX_FIELDS`."""
    context: str = ""
    vram_gb: float | None = None
    ram_gb: float | None = None
    """Estimates after the change; of a removed model, before it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`models` are sorted by kind, then id; `top` are the keys beside the models."""

    models: tuple[ModelChange, ...] = ()
    top: tuple[FieldChange, ...] = ()
    same: int = 0
    before: int = 0
    after: int = 0
    """How many models each side has."""

    def of(self, kind: Kind) -> int:
        return sum(change.kind == kind for change in self.models)

    @property
    def is_empty(self) -> bool:
        return not self.models and not self.top


def compare(before: Outline, after: Outline) -> Difference:
    """From one outline to another."""
    gone = {name: model for name, model in before.models.items() if name not in after.models}
    come = {name: model for name, model in after.models.items() if name not in before.models}
    renamed = dict(_renamed(gone, come))
    changes = [_changed(name, renamed[name], gone[renamed[name]], come[name]) for name in renamed]
    changes += [_whole(name, "added", model) for name, model in come.items() if name not in renamed]
    moved = set(renamed.values())
    changes += [_whole(name, "removed", model) for name, model in gone.items() if name not in moved]
    same = 0
    for name, model in after.models.items():
        old = before.models.get(name)
        if old == model:
            same += 1
        elif old is not None:
            change = _changed(name, "", old, model)
            if change.fields:
                changes.append(change)
            else:
                same += 1
    changes.sort(key=lambda change: (KINDS.index(change.kind), change.id))
    top = tuple(_mapping_changes("key", before.top, after.top))[:MAX_FIELDS]
    return Difference(tuple(changes), top, same, len(before.models), len(after.models))


def _renamed(gone: Mapping[str, ModelOutline], come: Mapping[str, ModelOutline]) -> Iterator[tuple[str, str]]:
    """(new id, old id) where a model of the same file came back under another id: the same launch first."""
    left = dict(gone)
    by_launch: dict[tuple[str, ...], list[str]] = {}
    for name, model in gone.items():
        by_launch.setdefault(_launch(model), []).append(name)
    rest = []
    for name, model in come.items():
        twins = by_launch.get(_launch(model), []) if model.path else []
        if twins:
            left.pop(twins[0])
            yield name, twins.pop(0)
        else:
            rest.append(name)
    old, new = _by_path(left), _by_path({name: come[name] for name in rest})
    for path, names in new.items():
        if path and len(names) == len(old.get(path, ())) == 1:
            yield names[0], old[path][0]


def _by_path(models: Mapping[str, ModelOutline]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, model in models.items():
        found.setdefault(model.path, []).append(name)
    return found


def _launch(model: ModelOutline) -> tuple[str, ...]:
    flags = (f"{name}={value}" for name, value in sorted(model.flags.items()) if name not in _OWN_NAME)
    return (model.program, *flags)


def _whole(name: str, kind: Kind, model: ModelOutline) -> ModelChange:
    return _with_figures(ModelChange(name, kind, path=model.path), model)


def _changed(name: str, was: str, before: ModelOutline, after: ModelOutline) -> ModelChange:
    fields = list(_field_changes(before, after))
    change = ModelChange(
        name,
        "renamed" if was else "changed",
        tuple(fields[:MAX_FIELDS]),
        was,
        after.path or before.path,
        max(0, len(fields) - MAX_FIELDS),
    )
    return _with_figures(change, after)


def _with_figures(change: ModelChange, model: ModelOutline) -> ModelChange:
    return replace(change, context=model.context, vram_gb=model.vram_gb, ram_gb=model.ram_gb)


def _field_changes(before: ModelOutline, after: ModelOutline) -> Iterator[FieldChange]:
    if before.program != after.program:
        yield FieldChange("program", "program", _shown(before.program), _shown(after.program))
    yield from _mapping_changes("flag", before.flags, after.flags)
    yield from _mapping_changes("key", before.keys, after.keys)
    for name, old, new in (("VRAM", before.vram_gb, after.vram_gb), ("RAM", before.ram_gb, after.ram_gb)):
        if old != new:
            yield FieldChange("estimate", name, _gib(old), _gib(new))


def _gib(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _mapping_changes(
    kind: Literal["flag", "key"], before: Mapping[str, Value], after: Mapping[str, Value]
) -> Iterator[FieldChange]:
    """In the order of the file as it will be; what is gone comes last."""
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, list) or isinstance(new, list):
            yield from _list_changes(kind, name, old, new)
        else:
            yield FieldChange(kind, name, _shown(old), _shown(new))


def _list_changes(
    kind: Literal["flag", "key"], name: str, old: Value | None, new: Value | None
) -> Iterator[FieldChange]:
    """Members that went and that came. The order of a list is no difference."""
    was, is_now = (value if isinstance(value, list) else [] if value is None else [value] for value in (old, new))
    kept, had = set(is_now), set(was)
    went = [item for item in was if item not in kept]
    came = [item for item in is_now if item not in had]
    if went or came or old is None or new is None:
        yield FieldChange(kind, name, _listed(went, old), _listed(came, new), is_list=True)


def _listed(items: Sequence[str], whole: Value | None) -> str | None:
    if whole is None:
        return None
    more = f" and {len(items) - MAX_ITEMS} more" if len(items) > MAX_ITEMS else ""
    return (_shown(", ".join(items[:MAX_ITEMS])) or "") + more


def _shown(value: Value | None) -> str | None:
    text = value if isinstance(value, str) else None
    return text if text is None or len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 2]} …"
