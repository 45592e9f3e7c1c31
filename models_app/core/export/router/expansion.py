"""Macros as the readers replace them: `${env.NAME}` in the raw text, then declared ones, `MODEL_ID` and `PORT`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from models_app.core.export.load import Node, walk_texts
from models_app.core.export.macros import ENVIRONMENT_NAME, MACRO, RESERVED
from models_app.core.export.router.readers import Reader, Violation, text_of
from models_app.core.launch.macros import PORT

DEFAULT_PROXY = "http://localhost:${PORT}"
MACRO_NAME_LIMIT = 63
MAX_EXPANDED_LENGTH = 1 << 20
"""Characters of one text with its macros replaced: ten lines of macros could make a petabyte of it."""
MAX_EXPANDED_TOTAL = 1 << 25
"""The same for all texts of a file together."""
Macros = dict[str, Any]


class ExpansionError(ValueError):
    """Macros that grow without measure."""


def environment_names(tree: Node) -> list[str]:
    """Variables that a text asks for, in keys and values; comments do not count."""
    names: dict[str, None] = {}
    for path, node in walk_texts(tree):
        for text in (*(key for key in path if isinstance(key, str)), node.value):
            names.update(dict.fromkeys(ENVIRONMENT_NAME.findall(text)))
    return list(names)


def with_environment(text: str, names: list[str], environ: Mapping[str, str]) -> str:
    """The text with its environment macros replaced. Raises `ValueError` for an unset or unusable variable."""
    for name in names:
        if name not in environ:
            raise ValueError(f"environment variable '{name}' is not set")
        value = environ[name]
        if any(character in value for character in "\r\n\0"):
            raise ValueError(f"environment variable '{name}' holds a line break or NUL")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        text = text.replace(f"${{env.{name}}}", escaped)
    return text


def macro_violations(macros: Any, where: tuple[str | int, ...]) -> Iterator[Violation]:
    """What is wrong with a `macros` block."""
    if macros is None:
        return
    if not isinstance(macros, dict):
        yield Violation("V-05", where, "macros must be a mapping")
        return
    for name, value in macros.items():
        path = (*where, name)
        if name in RESERVED:
            yield Violation("V-05", path, f"macro name '{name}' is reserved")
        elif len(name) > MACRO_NAME_LIMIT or not MACRO.fullmatch(f"${{{name}}}"):
            yield Violation("V-05", path, f"macro name '{name}' is not up to {MACRO_NAME_LIMIT} of a-z, 0-9, _ and -")
        elif not isinstance(value, str | int | float):
            yield Violation("V-05", path, f"macro '{name}' must be a text, a number, true or false")
        elif isinstance(value, str) and f"${{{name}}}" in value:
            yield Violation("V-05", path, f"macro '{name}' holds itself")


def replaced(value: Any, name: str, by: Any) -> Any:
    """A value with one macro replaced; a text that is nothing but the macro takes the macro's type."""
    slug = f"${{{name}}}"
    match value:
        case str():
            return by if value == slug else _with_text(value, slug, text_of(by))
        case dict():
            return {key: replaced(inner, name, by) for key, inner in value.items()}
        case list():
            return [replaced(item, name, by) for item in value]
    return value


def _with_text(value: str, slug: str, by: str) -> str:
    if len(value) + value.count(slug) * (len(by) - len(slug)) > MAX_EXPANDED_LENGTH:
        raise ExpansionError(f"macros make a text longer than {MAX_EXPANDED_LENGTH:,} characters")
    return value.replace(slug, by)


def length_of(fields: Mapping[str, Any]) -> int:
    """Characters of all texts in the values of a model."""
    return sum(len(text) for name, value in fields.items() for _, text in _texts(value, (name,)))


def with_macros(value: Any, macros: Macros) -> Any:
    """Later declarations first, so that a macro may use those declared before it."""
    for name in reversed(macros):
        value = replaced(value, name, macros[name])
    return value


def expand_model(model_id: str, fields: dict[str, Any], macros: Macros, reader: Reader) -> dict[str, Any]:
    """A model with its declared macros replaced; `PORT` is still there."""
    own = fields.get("macros")
    scope = {"MODEL_ID": model_id, **macros, **(own if isinstance(own, dict) else {})}
    searched = {name: value for name, value in fields.items() if name != "macros"}
    for name in ("cmd", "cmdStop"):
        if isinstance(searched.get(name), str):
            searched[name] = without_comments(searched[name])
    if searched.get("proxy") is None:
        searched["proxy"] = DEFAULT_PROXY
    fields_of_reader = reader.macro_fields
    for name, value in searched.items():
        if fields_of_reader is None or name in fields_of_reader:
            searched[name] = expanded(name, value, scope)
    return searched


def expanded(field: str, value: Any, scope: Macros) -> Any:
    """One field with its macros replaced. `filters.setParamsByID` is the one place where they work in keys too."""
    value = with_macros(value, scope)
    if field != "filters" or not isinstance(value, dict) or not isinstance(value.get("setParamsByID"), dict):
        return value
    by_id = {str(with_macros(f"{key} ", scope))[:-1]: inner for key, inner in value["setParamsByID"].items()}
    return {**value, "setParamsByID": by_id}


def without_comments(command: str) -> str:
    return "\n".join(line for line in command.split("\n") if not line.strip().startswith("#"))


def uses_port(value: Any) -> bool:
    return isinstance(value, str) and PORT in value


def leftovers(model_id: str, fields: Mapping[str, Any], reader: Reader) -> Iterator[Violation]:
    """Macros that nobody declared, in the values where this reader looks."""
    for name, value in fields.items():
        if reader.macro_fields is not None and name not in reader.macro_fields:
            continue
        for path, text in _texts(value, (name,)):
            for macro in MACRO.findall(text):
                if macro == "PID" and name == "cmdStop":
                    continue
                place = ".".join(str(part) for part in path)
                message = f"unknown macro '${{{macro}}}' found in {model_id}.{place}"
                yield Violation("V-05", ("models", model_id, *path), message)


def top_leftovers(config: Mapping[str, Any], reader: Reader) -> Iterator[Violation]:
    """The same for the top-level keys of a reader that replaces macros everywhere."""
    if reader.macro_fields is not None:
        return
    for name, value in config.items():
        if name in ("models", "macros") or name not in reader.top_keys:
            continue
        for path, text in _texts(value, (name,)):
            for macro in MACRO.findall(text):
                place = ".".join(str(part) for part in path)
                yield Violation("V-05", path, f"{place}: unknown macro '${{{macro}}}'")


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Texts with their paths. The keys of `filters.setParamsByID` count as texts."""
    match value:
        case str():
            yield path, value
        case dict():
            for key, inner in value.items():
                if path[-1] == "setParamsByID":
                    yield (*path, key), key
                yield from _texts(inner, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, (*path, index))
