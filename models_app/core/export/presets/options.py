"""The options of llama-server as keys of a preset file, read from a table (`schemas/llama-server-options.json`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from models_app.core.launch.llama_flags import LLAMA

TABLE = Path(__file__).parent.parent / "schemas" / "llama-server-options.json"

IGNORED, OVERWRITTEN, ALIAS, SKIPPED, REMOVED, TWO_VALUES, PRESET_ONLY = (
    "ignored",  # removed before a model starts
    "overwritten",  # the router puts its own value
    "alias",  # read as names of the model, then overwritten
    "skipped",  # the key is skipped
    "removed",  # accepted by the router, refused by the model's process
    "two-values",  # the whole file is refused
    "preset-only",  # read by the router, never passed on
)
"""What the router does with an option besides passing it on."""

TRUE_WORDS = frozenset({"on", "enabled", "true", "1"})
FALSE_WORDS = frozenset({"off", "disabled", "false", "0"})

SOURCES = ("model", "hf-repo", "model-url", "docker-repo")
"""Options that say where a model comes from."""
EXITS = frozenset({"help", "cache-list", "completion-bash", "list-devices"})
"""Options that print something and end the process."""
PRESET_SWITCHES = frozenset({"load-on-startup", "dedup-cache-models"})
JSON_VALUES = frozenset({"chat-template-kwargs", "ui-config", "json-schema", "mcp-servers-json"})
ACCUMULATING = frozenset(
    {
        "spec-type",
        "lora",
        "lora-scaled",
        "override-tensor",
        "override-kv",
        "control-vector",
        "control-vector-scaled",
    }
)
"""Options whose repetition adds up; in a preset they are one list with commas."""

_ENV, _NEGATED_ENV = "LLAMA_ARG_", "LLAMA_ARG_NO_"
_BUILT_IN_MODELS = ("embd-", "fim-", "gpt-oss-", "vision-")


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `flags` are all its spellings with dashes, `negated` those that switch it off."""

    name: str
    """Its long spelling without dashes: the first one of the flag table, else of the server's own list."""
    flags: tuple[str, ...]
    negated: tuple[str, ...] = ()
    values: int = 1
    env: str = ""
    handling: str = ""

    @property
    def is_switch(self) -> bool:
        return self.values == 0

    @property
    def reaches_model(self) -> bool:
        """Is it an argument of the model's own process?"""
        return self.handling in ("", REMOVED, TWO_VALUES) and self.name != "tags"

    @property
    def names_model(self) -> bool:
        """Does it say which model to load?"""
        return self.name in SOURCES or (self.is_switch and self.name.startswith(_BUILT_IN_MODELS))

    def spelling(self, flag: str) -> str:
        """The long key for one spelling of it, without dashes: a negated one stays negated."""
        if flag.startswith("--"):
            return flag[2:]
        if flag in self.negated:
            return next(name[2:] for name in self.negated if name.startswith("--"))
        return self.name

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that means it: spellings without dashes and the names of its environment variable."""
        keys = [flag.lstrip("-") for flag in (*self.flags, *self.negated)]
        if self.env:
            keys.append(self.env)
            if self.negated:
                keys.append(self.env.replace(_ENV, _NEGATED_ENV))
        return tuple(dict.fromkeys(keys))

    def negates(self, key: str) -> bool:
        """Is this key a negated spelling? The negated environment name is not: the server reads it like the other."""
        return any(flag.lstrip("-") == key for flag in self.negated)


@cache
def options() -> tuple[Option, ...]:
    """All options, in the server's own order. Read on first use: only this dialect needs them."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["options"]
    return tuple(_option(row) for row in rows)


def _option(row: dict[str, Any]) -> Option:
    flags = tuple(row["flags"])
    return Option(
        name=_long_name(flags),
        flags=flags,
        negated=tuple(row.get("negated", ())),
        values=row["values"],
        env=row.get("env", ""),
        handling=row.get("preset", ""),
    )


def _long_name(flags: tuple[str, ...]) -> str:
    known = next((found for flag in flags if (found := LLAMA.lookup(flag)) and found.long in flags), None)
    long = known.long if known else next((flag for flag in flags if flag.startswith("--")), flags[0])
    return long.lstrip("-")


@cache
def by_key() -> dict[str, Option]:
    return {key: option for option in options() for key in option.keys}


@cache
def by_flag() -> dict[str, Option]:
    return {flag: option for option in options() for flag in (*option.flags, *option.negated)}


def option_of_flag(flag: str) -> Option | None:
    """The option of a command's flag. The server reads `_` as `-` in long ones."""
    return by_flag().get(flag.replace("_", "-") if flag.startswith("--") else flag)
