"""A llama-server command as llama-fit-params takes it: what decides over memory, without the rest."""

from __future__ import annotations

from collections.abc import Sequence

from models_app.core.launch.flag_table import read_words
from models_app.core.launch.llama_flags import LLAMA

SERVER = "llama-server"
PROGRAM = "llama-fit-params"

_KNOBS = frozenset(
    {
        "model",
        "device",
        "ngl",
        "ctx",
        "ub",
        "batch",
        "parallel",
        "nCpuMoe",
        "flashAttn",
        "kvK",
        "kvV",
        "kvInRam",
        "loadMode",
        "splitMode",
        "tensorSplit",
        "mainGpu",
        "noOpOffload",
        "swaFull",
        "overrideTensor",
    }
)
"""Knobs of the table that change what the model allocates. llama-fit-params refuses `--kv-unified` (build 11434) and
leaves out drafts and projectors."""


def fit_params_words(argv: Sequence[str]) -> list[str]:
    """The words after the executable, in their order; the last one of a repeated flag counts, as on the server."""
    return [word.text for word in read_words(LLAMA, argv[1:]) if word.row is not None and word.row.knob in _KNOBS]


def has_flag(argv: Sequence[str], canonical: str) -> bool:
    """Whether a flag without value is there, in any spelling."""
    return any(word.row is not None and word.row.canonical == canonical for word in read_words(LLAMA, argv[1:]))


def flag_value(argv: Sequence[str], knob: str) -> str:
    """The value that counts of a flag with one value, "" without it."""
    value = ""
    for word in read_words(LLAMA, argv[1:]):
        if word.row is None or word.row.knob != knob:
            continue
        if word.is_value:
            value = word.text
        elif word.flag is not None and word.flag.inline:
            value = word.flag.value
    return value
