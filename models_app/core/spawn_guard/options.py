"""The command line `quartermaster-spawn [options] -- <argv>`: written by the exporter, read when a model starts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from models_app.core.launch.numbers import number_text
from models_app.core.launch.tokens import split_flag_token

PROGRAM = "quartermaster-spawn"
SEPARATOR = "--"
SHARED_MEMORY = ("auto", "on", "off")


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """What a launch may use, in GiB, and which devices count: the settings of its host and the target of its plan."""

    target_gb: float = 0.0
    """GPU memory of all devices together; 0: all that is free."""
    min_gpu_fraction: float = 0.5
    """A launch with a smaller share of its model on the GPU is refused; 0 switches that off."""
    reserve_gb: float = 0.5
    """Kept free on every device."""
    header_cache: str = ""
    """The file in which the host keeps header facts."""
    min_device_gb: float = 3.0
    shared_memory: str = "auto"
    pool_integrated: bool = False
    multi_gpu: bool = True
    compute_factor: float = 1.0
    """A person's own safety factor on compute buffers."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A guarded command taken apart. `problem` says which option could not be read; then the options say nothing."""

    options: GuardOptions
    argv: tuple[str, ...]
    problem: str = ""


def _amount(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return value


def _amount_or_none(text: str) -> float:
    """What is below zero is none, as in the settings (sizing.md 2.2)."""
    return 0.0 if -math.inf < float(text) < 0 else _amount(text)


def _switch(text: str) -> bool:
    return {"on": True, "off": False}[text]


def _shared(text: str) -> str:
    return SHARED_MEMORY[SHARED_MEMORY.index(text)]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return number_text(value) if isinstance(value, int | float) else str(value)


READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--target-gb": ("target_gb", _amount_or_none),
    "--min-gpu-fraction": ("min_gpu_fraction", _amount_or_none),
    "--reserve-gb": ("reserve_gb", _amount_or_none),
    "--header-cache": ("header_cache", str),
    "--min-device-gb": ("min_device_gb", _amount),
    "--shared-memory": ("shared_memory", _shared),
    "--pool-integrated": ("pool_integrated", _switch),
    "--multi-gpu": ("multi_gpu", _switch),
    "--compute-factor": ("compute_factor", _amount),
}
"""Option -> (attribute, reader of its value), in the order in which they are written."""
ALWAYS_WRITTEN = frozenset({"min_gpu_fraction", "reserve_gb"})
"""Said even where they have their default, so that a command shows what it is held to."""


def guard_words(program: str, options: GuardOptions) -> list[str]:
    """The words in front of a guarded command."""
    defaults = {item.name: item.default for item in fields(GuardOptions)}
    words = [program]
    for flag, (attribute, _reader) in READERS.items():
        value = getattr(options, attribute)
        if attribute in ALWAYS_WRITTEN or value != defaults[attribute]:
            words += [flag, _written(value)]
    return [*words, SEPARATOR]


def read_guarded(words: Sequence[str]) -> Guarded:
    """`words` are what follows the program. Without a `--` there is no command."""
    if SEPARATOR not in words:
        return Guarded(GuardOptions(), (), f"there is no {SEPARATOR} in front of a command")
    end = list(words).index(SEPARATOR)
    argv = tuple(words[end + 1 :])
    if not argv:
        return Guarded(GuardOptions(), (), f"there is no command behind {SEPARATOR}")
    try:
        return Guarded(GuardOptions(**_values(words[:end])), argv)
    except ValueError as error:
        return Guarded(GuardOptions(), argv, str(error))


def _values(words: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    rest = list(words)
    while rest:
        flag = split_flag_token(rest.pop(0))
        if flag.name not in READERS:
            raise ValueError(f"the option {flag.name[:60]} is not known")
        if not flag.inline and not rest:
            raise ValueError(f"the option {flag.name} has no value")
        attribute, reader = READERS[flag.name]
        text = flag.value if flag.inline else rest.pop(0)
        try:
            values[attribute] = reader(text)
        except (ValueError, KeyError):
            raise ValueError(f"the option {flag.name} cannot be {text[:60]!r}") from None
    return values


def is_guarded(words: Sequence[str]) -> bool:
    """Whether these are the words of a guarded command, its program first."""
    name = words[0].replace("\\", "/").rpartition("/")[2] if words else ""
    return name.removesuffix(".exe") == PROGRAM and SEPARATOR in words


def beside(interpreter: str) -> str:
    """Where the script of an installation lies: beside its interpreter."""
    return os.path.join(os.path.dirname(interpreter), PROGRAM)


def guard_apart(words: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The guard with its options, and the command that it starts; () and the words where there is no guard."""
    if not is_guarded(words):
        return (), list(words)
    end = list(words).index(SEPARATOR)
    return tuple(words[:end]), list(words[end + 1 :])
