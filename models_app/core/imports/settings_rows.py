"""Override rows of a generate file and its sidecar, as items: a row for one file, a rule for a pattern.

Rows shadow each other as a whole. A row that an earlier one leaves nothing to is told, not taken: here a model's own
settings always go before rules, so it would begin to count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models_app.core.export.load import LoadError
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.imports.report import Item, Kind, Needs, Target
from models_app.core.imports.settings_said import (
    ARGUMENT_KEYS,
    ELLIPSIS,
    MASKED,
    Files,
    Said,
    field_items,
    lost,
    variant_items,
)
from models_app.core.settings import Override, Variant, record_to_mapping
from models_app.core.settings_files.files import ReadFile
from models_app.core.settings_files.reading import Remark
from models_app.core.state.globs import glob_match, is_glob
from models_app.core.state.overrides import normalise_none, takes_quant

MODELS, RULES = "overrides", "rules"
"""Headings of the report."""

PathKey = Callable[[str], str]
"""Equal keys are paths of one file, by the rules of the host's system."""
MOST_ROWS = 20_000
MOST_PATTERNS = 1000
"""More than a host can have; each is tried on every row for one file."""
_ABSENT = {item.key: item.absent for item in OVERRIDE_FIELDS}


@dataclass(frozen=True, slots=True)
class KnownFile:
    """One model of the host. `by_rule` is what a rule sets for it while it has no settings of its own."""

    path: str
    quant: str = ""
    by_rule: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Row:
    """One row with its place in the order of resolution."""

    override: Override
    said: Said
    errors: tuple[Remark, ...] = ()


def row_items(files: Files, models: Sequence[KnownFile], key: PathKey) -> Iterator[Item]:
    """The items of all rows: those for one file first, since a rule that came before would be copied into them.

    Raises `LoadError` for more rows than anybody writes.
    """
    rows = _in_order(files)
    for row in rows:
        for error in row.errors:
            said = Said(f"{row.said.source}", error.line, None)
            yield lost(said, MODELS, f"{error.where}: {error.text}. The row is not taken.")
    order = _Order([row for row in rows if not row.errors], key)
    known = _Models(models, key)
    for place, row in enumerate(order.rows):
        if not is_glob(row.override.match):
            yield from _of_one_file(row, place, order, known)
    for place in order.patterns:
        yield from _of_a_pattern(order.rows[place], [order.rows[other] for other in order.patterns if other < place])


class _Order:
    """Rows in the order of resolution, found by the path that they name."""

    def __init__(self, rows: Sequence[_Row], key: PathKey) -> None:
        self.rows, self.key = rows, key
        self.patterns = [place for place, row in enumerate(rows) if is_glob(row.override.match)]
        if len(rows) > MOST_ROWS or len(self.patterns) > MOST_PATTERNS:
            limits = f"at most {MOST_ROWS:,} overrides, {MOST_PATTERNS:,} of them with a pattern"
            raise LoadError(f"the files have {len(rows):,} overrides; {limits}")
        self.exact: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            if not is_glob(row.override.match):
                self.exact.setdefault(key(row.override.match), []).append(place)

    def winner(self, model: KnownFile, before: int) -> _Row | None:
        """The first row in front of a place that counts for a model."""
        named = self.exact.get(self.key(model.path), ())
        patterns = (place for place in self.patterns if glob_match(self.rows[place].override.match, model.path))
        places = sorted(place for place in (*named, *patterns) if place < before)
        found = (self.rows[place] for place in places)
        return next((row for row in found if takes_quant(row.override, model.quant)), None)


class _Models:
    """The models of a host by path: as its system compares paths, and by letters alone."""

    def __init__(self, models: Iterable[KnownFile], key: PathKey) -> None:
        self.key = key
        self.exact: dict[str, list[KnownFile]] = {}
        self.folded: dict[str, list[KnownFile]] = {}
        for model in models:
            self.exact.setdefault(key(model.path), []).append(model)
            self.folded.setdefault(_folded(model.path), []).append(model)

    def of(self, match: str) -> list[KnownFile]:
        """The file of that path; where there is none, those that differ in capitals or slashes alone."""
        return self.exact.get(self.key(match)) or self.folded.get(_folded(match), [])


def _folded(path: str) -> str:
    return path.strip().lower().replace("\\", "/")


def _in_order(files: Files) -> list[_Row]:
    """The sidecar's rows for one file, its patterns, then the file's rows."""
    own = list(_rows(files.sidecar, "sidecar ")) if files.sidecar else []
    exact = [row for row in own if not is_glob(row.override.match)]
    patterns = [row for row in own if is_glob(row.override.match)]
    return [*exact, *patterns, *(_rows(files.file, "") if files.file else ())]


def _rows(read: ReadFile[Any], prefix: str) -> Iterator[_Row]:
    for index, override in enumerate(read.content.overrides):
        path = ("overrides", index)
        said = Said(f"{prefix}overrides[{index}]", read.line_of(path), _fields(normalise_none(override)))
        yield _Row(override, said, read.errors_below(path))


def _fields(row: Override) -> dict[str, Any]:
    document = record_to_mapping(row)
    return {key: value for key, value in document.items() if key not in ("match", "quant", "variants")}


def _of_one_file(row: _Row, place: int, order: _Order, models: _Models) -> Iterator[Item]:
    match, quant = row.override.match, row.override.quant
    found = models.of(match)
    if not found:
        yield lost(row.said, MODELS, f"No model here has the path {match}: scan its folder, then try again.")
    for model in found:
        first = order.winner(model, place)
        if not takes_quant(row.override, model.quant):
            yield lost(row.said, MODELS, f"It is for {quant}, and the file is {model.quant or 'none'}.")
        elif first is not None:
            yield lost(
                row.said, MODELS, f"{first.said.source} in line {first.said.line:,} counts for this model instead."
            )
        else:
            yield from _own_settings(row, model)


def _own_settings(row: _Row, model: KnownFile) -> Iterator[Item]:
    target = Target(Kind.OVERRIDE, model.path)
    yield from field_items(row.said, target, MODELS, model.path)
    for key in model.by_rule:
        if key not in row.said.value and key in _ABSENT:
            place = Target(Kind.OVERRIDE, model.path, field=key)
            note = "A rule sets this; the row of the file stands alone, so it is automatic there."
            absent = _ABSENT[key]
            value = list(absent) if isinstance(absent, tuple) else absent
            yield Item(f"{row.said.source}.{key}", row.said.line, place, value, MODELS, model.path, note=note)
    for variant in row.override.variants:
        yield from _variant_items(row, model, variant)
    if not row.said.value and not row.override.variants and not model.by_rule:
        yield lost(row.said, MODELS, "It sets nothing.")


def _variant_items(row: _Row, model: KnownFile, variant: Variant) -> Iterator[Item]:
    name = variant.name.strip()
    fields = {key: value for key, value in record_to_mapping(variant).items() if key != "name"}
    said = Said(f"{row.said.source}.variants.{name or '?'}", row.said.line, fields)
    if not name:
        yield lost(said, MODELS, "A variant without a name makes nothing.")
        return
    yield from variant_items(said, Target(Kind.VARIANT, model.path, name), MODELS, model.path)


def _of_a_pattern(row: _Row, earlier: Sequence[_Row]) -> Iterator[Item]:
    match, quant = row.override.match, row.override.quant.strip()
    same = next((other for other in earlier if _identity(other) == _identity(row)), None)
    if same is not None:
        yield lost(row.said, RULES, f"{same.said.source} in line {same.said.line:,} has the same pattern and counts.")
        return
    variants = [record_to_mapping(variant) for variant in row.override.variants if variant.name.strip()]
    parts = [dict(row.said.value), *variants]
    for part in parts:
        for key in [key for key in ARGUMENT_KEYS & part.keys() if ELLIPSIS in str(part[key])]:
            del part[key]
            yield lost(Said(f"{row.said.source}.{key}", row.said.line, None), RULES, MASKED, secret=True)
    value = parts[0] | ({"variants": variants} if variants else {})
    needs = Needs.ARGUMENTS if any(ARGUMENT_KEYS & part.keys() for part in parts) else Needs.EDIT
    yield Item(row.said.source, row.said.line, Target(Kind.RULE, match, quant), value, RULES, match, needs=needs)


def _identity(row: _Row) -> tuple[str, str]:
    return _folded(row.override.match), row.override.quant.strip().lower()
