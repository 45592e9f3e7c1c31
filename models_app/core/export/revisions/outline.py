"""A router's file boiled down to what a comparison looks at: each model's flags, keys and estimates (web.md 11.3).

Order, comments and quoting leave no trace here. An outline is kept as JSON beside its revision, so that a comparison
parses no text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from models_app.core.errors import ExportError, LaunchError
from models_app.core.export import load, presets
from models_app.core.export.document import Document, structure
from models_app.core.export.presets import reading
from models_app.core.export.presets.grammar import PresetSyntaxError
from models_app.core.export.presets.options import option_of_flag
from models_app.core.launch.flag_table import FlagTable, read_words
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import POSIX, split_command
from models_app.core.spawn_guard.options import guard_apart

Value = str | list[str]
"""A scalar as text, or a list of such: of lists only what came and went is told."""

ESTIMATES = ("estVramGB", "estRamGB")
GUARD = "spawn guard"
"""Among the flags of a model: the command that starts its own."""
_OURS = "metadata.quartermaster."
"""Where llama-swap's file keeps them."""
_MODEL_FLAGS = ("model", "-m", "--model", "--model-path", "--diffusion-model")
_NUMBER = re.compile(r"-\.?[0-9]")
_NO_TABLE = FlagTable("", ())
MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class ModelOutline:
    """One served id. `flags` are by their long name without dashes where llama-server knows them, else as written."""

    program: str = ""
    flags: Mapping[str, Value] = field(default_factory=dict)
    keys: Mapping[str, Value] = field(default_factory=dict)
    """The other keys of the entry, nested ones with dots."""
    vram_gb: float | None = None
    ram_gb: float | None = None

    @property
    def path(self) -> str:
        """The model file of the command, "" where none is named."""
        return next((self._one(name) for name in _MODEL_FLAGS if name in self.flags), "")

    @property
    def context(self) -> str:
        """The window of a chat model in tokens, "" where none is given."""
        return self._one("ctx-size")

    def _one(self, flag: str) -> str:
        """The value of a flag; of a repeated one the last, as servers take it."""
        found = self.flags.get(flag, "")
        return found if isinstance(found, str) else found[-1] if found else ""


_MODEL_FIELDS = fields(ModelOutline)


@dataclass(frozen=True, slots=True)
class Outline:
    """`top` are the keys of the file beside its models, nested ones with dots."""

    models: Mapping[str, ModelOutline] = field(default_factory=dict)
    top: Mapping[str, Value] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Mappings and lists are those of the outline: there may be ten thousand models."""
        models = {
            name: {item.name: getattr(model, item.name) for item in _MODEL_FIELDS}
            for name, model in self.models.items()
        }
        return {"models": models, "top": self.top}


def outline_from_json(data: Mapping[str, Any]) -> Outline:
    """What `as_json` gave."""
    models = {name: ModelOutline(**item) for name, item in data.get("models", {}).items()}
    return Outline(models, data.get("top", {}))


def outline_of(dialect: str, text: str, entries: Iterable[Mapping[str, Any]] = (), rules: str = POSIX) -> Outline:
    """The outline of a file. `entries` carry estimates (`id`, `est_vram_gib`, `est_ram_gib`) where a file has none;
    `rules` are those by which its host splits commands.

    Raises ExportError for a text that its router could not read either.
    """
    known = {str(item.get("id")): item for item in entries}
    try:
        return _of_presets(text, known) if dialect == presets.SLUG else _of_yaml(text, known, rules)
    except (PresetSyntaxError, reading.PresetError) as error:
        raise ExportError(str(error)) from error


def _of_presets(text: str, known: Mapping[str, Mapping[str, Any]]) -> Outline:
    models: dict[str, ModelOutline] = {}
    for name, given in reading.read(text).models.items():
        vram, ram = _reported(known.get(name, {}))
        models[name] = ModelOutline(flags=dict(given), vram_gb=vram, ram_gb=ram)
    return Outline(models)


def outline_of_document(document: Document, text: str, entries: Iterable[Mapping[str, Any]] = ()) -> Outline:
    """The same for a file that was rendered just now: its structure is known, so a large text need not be parsed."""
    if document.dialect == presets.SLUG:
        return outline_of(document.dialect, text, entries)
    known = {str(item.get("id")): item for item in entries}
    return _of_config(structure(document), known, document.word_rules)


def _of_yaml(text: str, known: Mapping[str, Mapping[str, Any]], rules: str) -> Outline:
    config = load.load(text).value
    return _of_config(config, known, rules) if isinstance(config, dict) else Outline()


def _of_config(config: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], rules: str) -> Outline:
    given = config.get("models")
    models = {
        name: _model(fields if isinstance(fields, Mapping) else {}, known.get(name, {}), rules)
        for name, fields in (given.items() if isinstance(given, Mapping) else ())
    }
    return Outline(models, flattened({key: value for key, value in config.items() if key != "models"}))


def _model(fields: Mapping[str, Any], known: Mapping[str, Any], rules: str) -> ModelOutline:
    keys = flattened({key: value for key, value in fields.items() if key != "cmd"})
    vram, ram = (_figure(keys.pop(name, keys.pop(_OURS + name, None))) for name in ESTIMATES)
    planned_vram, planned_ram = _reported(known)
    program, flags = taken_apart(str(fields.get("cmd") or ""), rules)
    return ModelOutline(
        program, flags, keys, vram if vram is not None else planned_vram, ram if ram is not None else planned_ram
    )


def _reported(entry: Mapping[str, Any]) -> tuple[float | None, float | None]:
    vram, ram = (entry.get(name) for name in ("est_vram_gib", "est_ram_gib"))
    return (
        round(vram, 2) if isinstance(vram, int | float) else None,
        round(ram, 2) if isinstance(ram, int | float) else None,
    )


def _figure(value: Value | None) -> float | None:
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def taken_apart(command: str, rules: str = POSIX) -> tuple[str, dict[str, Value]]:
    """The program, and every flag with its value; "" for a switch, a list for a flag that comes several times.

    A command that cannot be split is one flag without a name, so that a change of it is still seen.
    """
    try:
        words = split_command(command, rules)
    except LaunchError:
        return "", {"": command} if command else {}
    prefix, words = guard_apart(words)
    first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    flags: dict[str, Value] = {GUARD: " ".join(prefix)} if prefix else {}
    for name, value in _pairs(words[first:], _table_of(words[:first])):
        earlier = flags.get(name)
        flags[name] = value if earlier is None else [*([earlier] if isinstance(earlier, str) else earlier), value]
    return " ".join(words[:first]), flags


def _table_of(program: Sequence[str]) -> FlagTable:
    name = os.path.basename((program[-1] if program else "").replace("\\", "/"))
    if name.startswith("llama-server"):
        return LLAMA
    return SD if name.startswith("sd") else _NO_TABLE


def name_in(model: ModelOutline, flag: str) -> str:
    """How this outline calls a flag that somebody typed. Only presets name no program."""
    return _long_name(flag, _table_of(model.program.split(" ")) if model.program else LLAMA)


def _pairs(words: Sequence[str], table: FlagTable) -> list[tuple[str, str]]:
    """Flags with their values in order. A flag that the table does not know takes all words up to the next flag."""
    pairs: list[tuple[str, list[str]]] = []
    for word in read_words(table, words):
        loose = word.flag is None or (word.row is None and bool(_NUMBER.match(word.text)))
        if pairs and (word.is_value or loose):
            pairs[-1][1].append(word.text)
        elif word.flag is not None:
            name = _long_name(word.flag.name, table)
            pairs.append((name, [word.flag.value] if word.flag.inline else []))
    return [(name, " ".join(values)) for name, values in pairs]


def _long_name(flag: str, table: FlagTable) -> str:
    if table is LLAMA and (option := option_of_flag(flag)):
        return option.spelling(flag) if flag in option.negated else option.name
    row = table.lookup(flag)
    return row.long if row else flag


def flattened(fields: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Value]:
    """Nested mappings as one, keys joined by dots. A list of scalars stays one, any other becomes numbered keys."""
    found: dict[str, Value] = {}
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if isinstance(value, list | tuple) and not any(isinstance(item, Mapping | list | tuple) for item in value):
            found[name] = [_text(item) for item in value]
        elif isinstance(value, Mapping | list | tuple) and depth < MAX_DEPTH:
            inner = value if isinstance(value, Mapping) else {str(n): item for n, item in enumerate(value, 1)}
            found |= flattened(inner, f"{name}.", depth + 1)
        else:
            found[name] = _text(value)
    return found


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
