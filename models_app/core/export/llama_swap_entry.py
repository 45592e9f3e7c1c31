"""One entry for llama-swap (config-yaml.md 12.2, 12.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

from models_app.core.classes.spawn import CONFIG_FLAG, CPU_FLAG, config_file_name, config_json
from models_app.core.errors import LaunchError
from models_app.core.export import scalars
from models_app.core.export.document import Companion, Entry, Skipped
from models_app.core.export.guarding import GuardPlace, guard_line
from models_app.core.export.macros import macro_in_entry, neutral
from models_app.core.launch.tokens import POSIX, join_tokens, split_command, split_flag_token

CAPABILITIES = ("tools", "reranker", "context")
"""Capability keys that this router knows besides the modalities."""
MODALITIES = frozenset({"text", "audio", "image"})
SILENT_CLASSES = frozenset({"sam", "video", "3d", "embedding", "decision"})
SILENT_CAPABILITIES = frozenset({"segmentation", "embedding", "decision", "music", "separation", "musicTranscribe"})
"""With one of these, modalities would advertise something else than what is served."""
METADATA_FIELDS = ("estVramGB", "estRamGB", "promptEnhancer", "promptEnhancerEdit")
METADATA_CLASS = {"sam": "segment", "audiocpp": "audio"}
DROPPED = frozenset(
    {
        *METADATA_FIELDS,
        "audiocpp",
        "capabilities",
        "concurrencyLimit",
        "metadata",
        "promptEnhancerPrompt",
        "promptEnhancerEditPrompt",
        "slotCachePreamble",
        "healthCheckTimeout",
    }
)
ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*=")
MAX_NAME = 128
COMPANION_FOLDER = "audiocpp"
NO_FOLDER = (
    "audio.cpp reads its model from a second file beside this one, and where this one will lie is not known: "
    "name the path of the config file"
)
SLOT_PATH = "--slot-save-path"
CTX_FLAGS = frozenset({"-c", "--ctx-size"})
SLOT_FLAGS = frozenset({"-np", "--parallel"})


class EntryOptions(GuardPlace, Protocol):
    """What of the export's options concerns an entry."""

    @property
    def config_folder(self) -> str: ...
    @property
    def keep_concurrency_limit(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Converted:
    """An entry for llama-swap and the files that it needs beside the config."""

    entry: Entry
    companions: tuple[Companion, ...] = ()


def convert_entry(entry: Entry, options: EntryOptions, rules: str = POSIX) -> Converted | Skipped:
    """The entry for llama-swap, or why it cannot be one. `rules` are those by which its host splits commands."""
    if macro := macro_in_entry(entry, everywhere=True):
        return _skipped(entry, f"its text holds {neutral(macro)}, which llama-swap would replace")
    command = list(entry.command)
    companions: tuple[Companion, ...] = ()
    if "audiocpp" in entry.fields and not _has_flag(command, CONFIG_FLAG, rules):
        if not options.config_folder:
            return _skipped(entry, NO_FOLDER)
        companions = (_companion(entry),)
        command.append(f"{CONFIG_FLAG} {_always_quoted(f'{options.config_folder}/{companions[0].name}')}")
    if entry.model_class == "sam" and not _has_flag(command, CPU_FLAG, rules):
        command.append(CPU_FLAG)
    command = without_flag(command, SLOT_PATH, rules)
    fields, comments = _fields(entry, command, options, rules)
    command = [*guard_line(entry, options, rules), *command]
    converted = replace(entry, command=tuple(command), fields=fields, comments=(*entry.comments, *comments))
    return Converted(converted, companions)


def _skipped(entry: Entry, reason: str) -> Skipped:
    return Skipped(id=neutral(entry.id), reason=reason, model_class=entry.model_class, path=entry.path)


def _companion(entry: Entry) -> Companion:
    """The model list of an audio.cpp server, which has no model flag (config-yaml.md 5.5)."""
    content = config_json(entry.id, entry.fields["audiocpp"])
    return Companion(
        f"{COMPANION_FOLDER}/{config_file_name(entry.id)}", json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    )


def _always_quoted(path: str) -> str:
    return '"' + scalars.forward(path).replace('"', '\\"') + '"'


def words(command: Sequence[str], rules: str = POSIX) -> list[str]:
    """The words of a command; none when it cannot be split."""
    try:
        return split_command(" ".join(command), rules)
    except LaunchError:
        return []


def _has_flag(command: Sequence[str], flag: str, rules: str) -> bool:
    written = any(flag in line for line in command)
    return written and any(split_flag_token(word).name == flag for word in words(command, rules))


def without_flag(command: Sequence[str], flag: str, rules: str = POSIX) -> list[str]:
    """The lines without a flag that takes one value. A line that does not hold it keeps its bytes."""
    kept = []
    for line in command:
        tokens = words([line], rules) if flag in line else []
        remaining = list(_without(tokens, flag))
        if len(remaining) == len(tokens):
            kept.append(line)
        elif remaining:
            kept.append(join_tokens(remaining, rules))
    return kept


def _without(tokens: Sequence[str], flag: str) -> list[str]:
    kept: list[str] = []
    skip = False
    for token in tokens:
        if skip:
            skip = False
        elif split_flag_token(token).name == flag:
            skip = not split_flag_token(token).inline
        else:
            kept.append(token)
    return kept


def _fields(
    entry: Entry, command: Sequence[str], options: EntryOptions, rules: str
) -> tuple[dict[str, Any], list[str]]:
    fields = {name: value for name, value in entry.fields.items() if name not in DROPPED}
    comments = []
    if options.keep_concurrency_limit and "concurrencyLimit" in entry.fields:
        fields["concurrencyLimit"] = entry.fields["concurrencyLimit"]
    if "env" in fields:
        usable = [item for item in fields["env"] if ENV_NAME.match(item)]
        if len(usable) < len(fields["env"]):
            comments.append("NOTE: environment names that are not upper-case were left out")
        fields["env"] = usable
    if "name" in fields:
        fields["name"] = fields["name"][:MAX_NAME]
    if "aliases" in fields:
        fields["aliases"] = [alias for alias in dict.fromkeys(fields["aliases"]) if alias]
    kept = {name: value for name, value in fields.items() if not _is_empty(value)}
    capabilities, moved = _capabilities(entry, command, rules)
    if capabilities:
        kept["capabilities"] = capabilities
    if not entry.as_written:
        kept["metadata"] = {**(entry.fields.get("metadata") or {}), "quartermaster": _metadata(entry, moved)}
    return kept, comments


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _metadata(entry: Entry, moved: Mapping[str, Any]) -> dict[str, Any]:
    block = {"class": METADATA_CLASS.get(entry.model_class, entry.model_class)}
    block |= {name: entry.fields[name] for name in METADATA_FIELDS if name in entry.fields}
    return {name: value for name, value in {**block, **moved}.items() if not _is_empty(value) and value != 0}


def _capabilities(entry: Entry, command: Sequence[str], rules: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays, and what moves to the metadata. No list of modalities is cut: a part would say something else."""
    given = dict(entry.fields.get("capabilities") or {})
    if entry.model_class == "llm" and not entry.as_written and (context := context_tokens(command, rules)):
        given.setdefault("context", context)
    silent = entry.model_class in SILENT_CLASSES or bool(SILENT_CAPABILITIES & given.keys())
    kept: dict[str, Any] = {}
    moved: dict[str, Any] = {}
    for name, value in given.items():
        if name in ("in", "out"):
            if not set(value) <= MODALITIES:
                moved[name] = value
            elif value and not silent:
                kept[name] = list(dict.fromkeys(value))
        elif name in CAPABILITIES:
            kept[name] = value
        else:
            moved[name] = value
    return {name: value for name, value in kept.items() if value}, moved


def context_tokens(command: Sequence[str], rules: str = POSIX) -> int:
    """The window of one conversation: `-c` divided by the slots, 0 when the command does not say."""
    found = {"ctx": 0, "slots": 1}
    tokens = words(command, rules)
    for flag, value in pairwise(tokens):
        name = "ctx" if flag in CTX_FLAGS else "slots" if flag in SLOT_FLAGS else ""
        if name and value.isascii() and value.isdigit():
            found[name] = int(value)
    return found["ctx"] // max(1, found["slots"])
