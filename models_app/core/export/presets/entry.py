"""One section from one planned command (router-llama-server.md 3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from models_app.core.export.presets import options as table
from models_app.core.export.presets.options import Option, option_of_flag
from models_app.core.export.presets.writing import Unwritable, json_text, json_value, value_text
from models_app.core.launch.tokens import split_flag_token

LEFT_OUT = frozenset({"host", "port", "slot-save-path"})
"""Ours, and without a meaning here: the router chooses the address, and nothing prunes a folder of slots."""
POOLING_AUTO = ("pooling", "auto")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)\Z")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_SCALED = re.compile(r":[-+]?(?:\d+\.?\d*|\.\d+)\Z")


@dataclass(slots=True)
class Keys:
    """Keys of a section in command order, and remarks about what was left out."""

    pairs: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Argument:
    option: Option
    key: str
    value: str


def keys_of(argv: Sequence[str]) -> Keys:
    """`argv` without the executable. Raises `Unwritable` where one flag would refuse the file or kill the model."""
    keys = Keys()
    written: dict[str, str] = {}
    sourced = False
    for argument in _arguments(argv):
        option = argument.option
        if option.name in LEFT_OUT or (option.name, argument.value) == POOLING_AUTO:
            continue
        if not option.reaches_model:
            keys.remarks.append(f"NOTE: --{option.name} is the router's own and was left out")
            continue
        if option.handling == table.REMOVED or option.name in table.EXITS:
            raise Unwritable(f"--{option.name} would end this server")
        sourced = sourced or option.names_model
        earlier = written.pop(option.name, "")
        value = _value(argument, keys.pairs.pop(earlier, ""))
        keys.pairs[argument.key] = value
        written[option.name] = argument.key
    if not sourced:
        raise Unwritable("its command names no model")
    return keys


def _arguments(argv: Sequence[str]) -> Iterator[_Argument]:
    tokens = iter(argv)
    for token in tokens:
        if not token.startswith("-"):
            raise Unwritable("its command holds a word that belongs to no flag")
        flag = split_flag_token(token)
        option = option_of_flag(flag.name)
        if option is None:
            raise Unwritable(f"{flag.name} is no flag of llama-server as we know it")
        if option.handling == table.TWO_VALUES:
            raise Unwritable(f"{flag.name} takes two values, which no preset can hold")
        if option.is_switch:
            key = option.spelling(flag.name.replace("_", "-"))
            yield _Argument(option, key, flag.value if flag.inline else "true")
            continue
        value = flag.value if flag.inline else next(tokens, None)
        if value is None:
            raise Unwritable(f"{flag.name} has no value")
        if option.name == "lora-scaled":
            value = _scaled(value, tokens)
        yield _Argument(option, option.name, value)


def _scaled(value: str, tokens: Iterator[str]) -> str:
    """`FILE:SCALE`. Older builds took the scale as a word of its own."""
    if not _SCALED.search(value):
        scale = next(tokens, "")
        if not _NUMBER.match(scale):
            raise Unwritable("--lora-scaled has no scale")
        value = f"{value}:{scale}"
    if _DRIVE.match(value):
        raise Unwritable("--lora-scaled cannot hold a path with a drive letter")
    return value


def _value(argument: _Argument, earlier: str) -> str:
    """The text of a key; a repeated option adds up, is merged, or takes the place of the earlier one."""
    name = argument.option.name
    try:
        if name == "chat-template-kwargs":
            return _merged(earlier, argument.value)
        if name in table.JSON_VALUES:
            return json_text(argument.value)
        value = value_text(argument.value)
        return value_text(f"{earlier},{value}") if earlier and name in table.ACCUMULATING else value
    except Unwritable as problem:
        raise Unwritable(f"the value of --{name} cannot be written: {problem}") from problem


def _merged(earlier: str, text: str) -> str:
    """Objects of several arguments become one; later keys win."""
    written = json_text(text)
    if not earlier:
        return written
    first, second = json.loads(earlier), json.loads(written)
    if not isinstance(first, dict) or not isinstance(second, dict):
        return written
    return json_value({**first, **second})
