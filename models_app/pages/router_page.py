"""The router of a host as its page shows it: what is loaded, since when, and why nothing is known."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models_app.models import Router
from models_app.router.state import HOLDING
from models_app.selectors.entry_sight import EntrySight
from quartermaster_site.access.permissions import Level
from quartermaster_site.access.redaction import redact
from quartermaster_site.figures import counted, gib

STATES = {
    "loaded": ("ok", "loaded", "ok"),
    "loading": ("act", "loading", "run"),
    "sleeping": ("", "asleep", "idle"),
    "stopping": ("act", "stopping", "wait"),
    "failed": ("bad", "failed", "bad"),
    "unloaded": ("", "not loaded", "idle"),
}
"""State -> tone, word, icon."""
ENDABLE = ("loaded", "sleeping")
"""A router ends such a model for another one when no request is in flight."""


@dataclass(frozen=True, slots=True)
class ModelLine:
    """`held`: it has a process. `foreign`: it comes from somewhere else than our file. `may`: it may be operated."""

    id: str
    aliases: str
    tone: str
    word: str
    shape: str
    note: str
    since: datetime
    window: str
    memory: str
    command: str
    held: bool
    foreign: bool
    may: bool


@dataclass(frozen=True, slots=True)
class RouterView:
    """`slots` says how many of how many are taken; `full` that a load ends another model, `busy` that it is refused.

    None of these is said to a person from whom a model is hidden. `may_unload_all`: they operate each that is loaded.
    """

    tone: str
    headline: str
    details: str
    slots: str
    full: bool
    busy: bool
    stale: bool
    lines: tuple[ModelLine, ...]
    others: tuple[ModelLine, ...]
    held: int
    may_unload_all: bool


def router_view(router: Router, estimates: Mapping[str, int], sight: EntrySight, *, shows_commands: bool) -> RouterView:
    """`estimates`: profile id -> bytes of GPU memory by our plans. Commands may hold paths and are for staff."""
    seen = [item for item in router.listed if sight.sees(item["id"])]
    lines = [_line(item, estimates, sight, shows_commands) for item in seen]
    whole = len(seen) == len(router.listed)
    held = router.held if whole else sum(line.held for line in lines)
    tone, headline = _headline(router, held)
    program = " ".join(part for part in (router.kind, router.program_version) if part)
    full = whole and bool(router.slots) and router.held >= (router.slots or 0)
    return RouterView(
        tone=tone,
        headline=headline,
        details=f"{program}, {counted(len(lines), 'model')}" if router.seen_at else "",
        slots=f"{router.held} of {counted(router.slots, 'slot')} taken" if router.slots and whole else "",
        full=full,
        busy=full and not any(item["state"] in ENDABLE for item in router.listed),
        stale=router.is_stale,
        lines=tuple(line for line in lines if line.held or line.tone == "bad"),
        others=tuple(line for line in lines if not line.held and line.tone != "bad"),
        held=held,
        may_unload_all=all(
            sight.level(item["id"]) >= Level.OPERATE for item in router.listed if item["state"] in HOLDING
        ),
    )


def _headline(router: Router, held: int) -> tuple[str, str]:
    if not router.url:
        return "", "No router address is set"
    if router.problem:
        return "bad", "The router cannot be asked"
    if router.seen_at is None:
        return "", "The router was not asked yet"
    if router.is_stale:
        return "warn", "The router was not asked lately: is the host's worker running?"
    return "ok", f"{counted(held, 'model')} loaded" if held else "Nothing is loaded"


def _line(item: Mapping[str, Any], estimates: Mapping[str, int], sight: EntrySight, shows_command: bool) -> ModelLine:
    tone, word, shape = STATES[item["state"]]
    code = item.get("exit_code")
    estimate = estimates.get(item["id"])
    return ModelLine(
        id=item["id"],
        aliases=", ".join(item["aliases"]),
        tone=tone,
        word=word,
        shape=shape,
        note=f"its process ended with code {code}" if code is not None else "",
        since=datetime.fromisoformat(item["since"]),
        window=f"{item['window_tokens']:,}" if item.get("window_tokens") else "",
        memory=gib(estimate) if estimate else "",
        command=redact(shlex.join(item["command"])) if shows_command and item["command"] else "",
        held=item["state"] in HOLDING,
        foreign=not item.get("from_file", True),
        may=sight.level(item["id"]) >= Level.OPERATE,
    )
