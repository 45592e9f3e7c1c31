"""Changes of single values in an argument list, each in the spelling that it already has."""

from __future__ import annotations

from collections.abc import Sequence

from models_app.core.launch.flag_table import read_words
from models_app.core.launch.llama_flags import LLAMA


def with_value(argv: Sequence[str], knob: str, value: str, flag: str = "") -> tuple[str, ...]:
    """The command with the last value of a knob replaced, since that is the one that counts.

    A knob that is not there is appended as `flag`; without one nothing happens.
    """
    words = list(argv)
    place = _place(words, knob)
    if place is None:
        return (*words, flag, value) if flag else tuple(words)
    name, mark, _ = words[place].partition("=")
    words[place] = f"{name}{mark}{value}" if mark and name.startswith("--") else value
    return tuple(words)


def value_of(argv: Sequence[str], knob: str) -> str:
    """The last value of a knob, "" without one."""
    place = _place(argv, knob)
    if place is None:
        return ""
    name, mark, value = argv[place].partition("=")
    return value if mark and name.startswith("--") else argv[place]


def _place(argv: Sequence[str], knob: str) -> int | None:
    """Where the last value of a knob stands: a word of its own, or a word with an inline value."""
    found = None
    for number, word in enumerate(read_words(LLAMA, argv[1:]), 1):
        inline = word.flag is not None and word.flag.inline
        if word.row is not None and word.row.knob == knob and (word.is_value or inline):
            found = number
    return found
