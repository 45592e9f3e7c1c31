"""Which fields a launch text owns, and by which of its flags: their controls are locked while it applies."""

from __future__ import annotations

from collections.abc import Sequence

from models_app.core.errors import LaunchError
from models_app.core.launch.flag_table import FlagTable, Word, read_words
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.ownership import fields_behind
from models_app.core.launch.sd_flags import SD
from models_app.core.launch.tokens import POSIX, split_command

_TABLES = {"llama": LLAMA, "sd": SD}


def locked_fields(text: str, engine: str, *, is_moe: bool | None = None, rules: str = POSIX) -> dict[str, str]:
    """Key of a field -> the flag with its values, as the text has it. A text that cannot be split locks nothing."""
    table = _TABLES.get(engine)
    if table is None or not text.strip():
        return {}
    try:
        words = read_words(table, split_command(text, rules))
    except LaunchError:
        return {}
    return {
        field.key: _with_values(words, index)
        for index, word in enumerate(words)
        if word.row is not None and not word.is_value and not word.row.additive
        for field in fields_behind(word.row.knob, is_moe)
    }


def _with_values(words: Sequence[Word], index: int) -> str:
    """The flag at `index` and the values that follow it."""
    end = index + 1
    while end < len(words) and words[end].is_value:
        end += 1
    return " ".join(word.text for word in words[index:end])


def table_of(engine: str) -> FlagTable | None:
    """The flags of a kind of backend, None where it takes no launch text."""
    return _TABLES.get(engine)
