"""Values of a preset file that do something else than they seem to (router-llama-server.md 7, the warnings)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from models_app.core.export.presets import options as table
from models_app.core.export.presets.grammar import Pair
from models_app.core.export.presets.options import FALSE_WORDS, TRUE_WORDS, Option
from models_app.core.export.presets.reading import given_value
from models_app.core.export.secrets import SECRET_FLAGS, SECRET_SHAPES

PATHS = frozenset({"model", "mmproj", "model-draft", "lora", "lora-scaled", "chat-template-file", "slot-save-path"})
PATH_LISTS = frozenset({"lora", "lora-scaled"})
KEYS = frozenset({"api-key", "api-key-file"})
_WITHOUT_EFFECT = re.compile(r"host\Z|port\Z|ssl-|models-|log-colors\Z")
_ABSOLUTE = re.compile(r"/|\\\\|[A-Za-z]:[\\/]")
_INTEGER = re.compile(r"\s*[-+]?\d")


def doubts_of(option: Option, pair: Pair) -> Iterator[tuple[str, str]]:
    """Rule and message of every doubt about one line."""
    value = pair.value
    if pair.glued:
        yield "LS-13", "the value ends at the # or ; that is glued to it; there is no way to write that mark"
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        yield "LS-14", "the quotes are part of the value"
    if _WITHOUT_EFFECT.match(option.name):
        yield "LS-16", f"{pair.key} has no effect here: the router sets it itself"
    elif _is_switch(option) and value not in TRUE_WORDS | FALSE_WORDS:
        yield "LS-17", f"{_shown(value)} is read as {_read_as(option, pair)}: write true or false"
    if option.name in PATHS and any(not _ABSOLUTE.match(path) for path in _paths(option, value)):
        yield "LS-21", "a relative path counts from the folder in which the router was started; ~ is not expanded"
    if option.name == "stop-timeout" and not _INTEGER.match(value):
        yield "LS-22", f"{_shown(value)} is no number of seconds: 10 is taken"
    if option.name not in KEYS and (f"--{option.name}" in SECRET_FLAGS or SECRET_SHAPES.match(value)):
        yield "LS-25", "this looks like a secret; the router shows it to everyone who may list models"


def _is_switch(option: Option) -> bool:
    return option.is_switch or option.name in table.PRESET_SWITCHES


def _read_as(option: Option, pair: Pair) -> str:
    if option.name in table.PRESET_SWITCHES:
        return "off"
    return "off" if given_value(option, pair.key, pair.value) in FALSE_WORDS else "on"


def _shown(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:40]}…"


def _paths(option: Option, value: str) -> list[str]:
    return value.split(",") if option.name in PATH_LISTS else [value]
