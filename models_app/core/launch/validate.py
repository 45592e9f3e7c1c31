"""Checks a composed command against the flag table and the binary's help (launch.md 11, 13, 14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from models_app.core.errors import LaunchError
from models_app.core.launch.flag_table import FlagTable, read_words
from models_app.core.launch.help import suggest
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.tokens import POSIX, split_command

BACKEND_MISSING = "backend-missing"
UNKNOWN = "unknown"
UNVERIFIED = "unverified"

_MESSAGES = {
    BACKEND_MISSING: "{} is a known flag, but this build does not have it: the build is older or newer than the flag.",
    UNKNOWN: "{} is known neither to us nor to this build.",
    UNVERIFIED: "{} is not known to us, and the help of this build was not read.",
}

PLUMBING = {
    "model": "the entry would serve another file; its settings stay tied to the generated path",
    "diffusionModel": "the entry would serve another file; its settings stay tied to the generated path",
    "port": "the router probes the port it assigned; the process may never be reachable",
    "host": "the router probes the port it assigned; the process may never be reachable",
    "slotSavePath": "snapshots go elsewhere while pruning and seeding use the configured path",
}
"""Knobs that belong to the router, and what happens when a text sets them: warn, and honour when confirmed."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One flag that may not work. `token` is its name without an inline value."""

    token: str
    kind: str
    message: str
    suggestions: tuple[str, ...] = ()


def validate_tokens(table: FlagTable, tokens: Iterable[str], help_spellings: Sequence[str] | None) -> tuple[Issue, ...]:
    """Issues of a whole command. `help_spellings` is None where the help cannot be read."""
    known_here = None if help_spellings is None else frozenset(help_spellings)
    issues = []
    for word in read_words(table, tokens):
        if word.flag is None or word.text in ("-", "--"):
            continue
        kind = ""
        if word.row is not None:
            if known_here is not None and known_here.isdisjoint(word.row.spellings):
                kind = BACKEND_MISSING
        elif known_here is None:
            kind = UNVERIFIED
        elif known_here.isdisjoint((word.flag.name, table.folded(word.flag.name))):
            kind = UNKNOWN
        if kind:
            name = word.flag.name
            near = suggest(table, name, help_spellings) if kind != BACKEND_MISSING else ()
            issues.append(Issue(name, kind, _MESSAGES[kind].format(name), near))
    return tuple(issues)


def plumbing_warnings(owned: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(knob, consequence) for each knob of the router that a text owns, sorted."""
    return tuple((knob, PLUMBING[knob]) for knob in sorted(owned) if knob in PLUMBING)


def check_commands(
    commands: Mapping[str, str], probe: Callable[[str], Sequence[str] | None], rules: str = POSIX
) -> dict[str, tuple[Issue, ...]]:
    """Issues of every llama-server command, by model id in sorted order.

    `probe` answers the help spellings of an executable, None when it fails: then nothing is said about its models.
    """
    probed: dict[str, Sequence[str] | None] = {}
    findings: dict[str, tuple[Issue, ...]] = {}
    for model_id in sorted(commands):
        try:
            exe, *arguments = split_command(commands[model_id], rules)
        except LaunchError:
            continue
        if "llama-server" not in exe.replace("\\", "/").rsplit("/", 1)[-1].lower():
            continue
        if exe not in probed:
            probed[exe] = probe(exe)
        spellings = probed[exe]
        issues = () if spellings is None else validate_tokens(LLAMA, arguments, spellings)
        if issues:
            findings[model_id] = issues
    return findings
