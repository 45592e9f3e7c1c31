"""What a router says of itself and its models, read from answers that nobody vouches for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from models_app.router.connection import RouterAway

MAX_MODELS = 4000
MAX_NAME_CHARACTERS = 4096
MAX_WORDS = 1000
MAX_COMMAND_CHARACTERS = 300_000
"""Linux passes no word of more than 131,071 bytes."""
STATES = ("unloaded", "loading", "loaded", "sleeping", "stopping", "failed")
HOLDING = ("loading", "loaded", "sleeping", "stopping")
"""States in which a model has a process, and at llama-server a slot."""


@dataclass(frozen=True, slots=True)
class RoutedModel:
    """One model that a router lists. `command` is what runs or would run, word by word."""

    id: str
    state: str
    aliases: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    exit_code: int | None = None
    window_tokens: int | None = None
    from_file: bool = True
    """It stands in the file that we write; llama-server also lists what its cache holds."""


@dataclass(frozen=True, slots=True)
class RouterState:
    """A router and its models in its own order. `slots`: how many models it keeps at most; None for no such limit."""

    kind: str
    version: str
    models: tuple[RoutedModel, ...]
    slots: int | None = None

    @property
    def held(self) -> tuple[RoutedModel, ...]:
        return tuple(model for model in self.models if model.state in HOLDING)

    @property
    def all_slots_busy(self) -> bool:
        return self.slots is not None and 0 < self.slots <= len(self.held)

    def as_json(self) -> dict[str, Any]:
        """As it is sent: what tuples hold as lists."""
        models = [
            {**asdict(model), "aliases": list(model.aliases), "command": list(model.command)} for model in self.models
        ]
        return {"kind": self.kind, "version": self.version, "slots": self.slots, "models": models}


def records(answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of objects under a key. Raises RouterAway for anything else."""
    value = answer.get(key)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise RouterAway(f"the router's answer has no list of {key}")
    if len(value) > MAX_MODELS:
        raise RouterAway(f"the router lists {len(value):,} models; at most {MAX_MODELS:,} are taken")
    return value


def text(value: Any, limit: int = MAX_NAME_CHARACTERS) -> str:
    """Text that a database keeps, cut; "" for anything else."""
    if not isinstance(value, str):
        return ""
    return value[:limit].replace("\x00", "�").encode("utf-8", "replace").decode("utf-8")


def texts(value: Any, count: int, limit: int) -> tuple[str, ...]:
    return tuple(text(item, limit) for item in value[:count]) if isinstance(value, list) else ()


def words_of(value: Any) -> tuple[str, ...]:
    """A command line, bounded as a whole."""
    words, left = [], MAX_COMMAND_CHARACTERS
    for word in texts(value, MAX_WORDS, MAX_COMMAND_CHARACTERS):
        left -= len(word)
        if left < 0:
            break
        words.append(word)
    return tuple(words)


def whole(value: Any, low: int, high: int) -> int | None:
    """A whole number in a range, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else None
