"""V-08 (web.md 11.4): flags in people's words that a text is written with only after somebody said so.

Pure. What was confirmed is kept by model, flag and value: another value is asked about again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from models_app.core.export.findings import CONFIRM, NOTE, CheckFinding, finding
from models_app.core.export.memory_rules import first_of
from models_app.core.export.revisions.outline import Outline, Value, name_in

RULE = "V-08"
Doubts = Mapping[str, Mapping[str, Value]]
"""Model -> flag, as its outline calls it -> value."""


def doubts_of(outline: Outline, entries: Iterable[Mapping[str, Any]]) -> Doubts:
    """Doubtful flags that planning noted, as people typed them, and that the file has."""
    found: dict[str, Mapping[str, Value]] = {}
    for item in entries:
        model = outline.models.get(str(item.get("id")))
        if model is None or not item.get("doubtful"):
            continue
        names = (name_in(model, flag) for flag in item["doubtful"])
        if held := {name: model.flags[name] for name in names if name in model.flags}:
            found[str(item["id"])] = held
    return found


def unconfirmed(doubts: Doubts, live: Outline, confirmed: Iterable[Mapping[str, Any]]) -> Doubts:
    """Those that neither stand in the `live` text nor were `confirmed` before, as `record_of` keeps that."""
    known = {
        (model, flag, digest)
        for item in confirmed
        if item.get("rule") == RULE
        for model, flags in item.get("models", {}).items()
        for flag, digest in flags.items()
    }
    left: dict[str, Mapping[str, Value]] = {}
    for name, flags in doubts.items():
        standing = live.models[name].flags if name in live.models else {}
        asked = {
            flag: value
            for flag, value in flags.items()
            if standing.get(flag) != value and (name, flag, _digest(value)) not in known
        }
        if asked:
            left[name] = asked
    return left


def record_of(doubts: Doubts) -> dict[str, Any]:
    """What is kept of a confirmation: values, which may be secrets, as digests."""
    models = {name: {flag: _digest(value) for flag, value in flags.items()} for name, flags in doubts.items()}
    return {"rule": RULE, "models": models}


def confirm_findings(doubts: Doubts, left: Doubts) -> Iterator[CheckFinding]:
    """One line: what is still to be confirmed; where nothing is, what was."""
    told = left or doubts
    if not told:
        return
    names = [f"{name} ({', '.join(spelled(flags))})" for name, flags in told.items()]
    whose = "1 model has flags that its" if len(names) == 1 else f"{len(names):,} models have flags that their"
    text = f"{whose} server does not know, or that belong to the router: {first_of(names)}"
    where = ("models", next(iter(told)))
    yield finding(RULE, CONFIRM if left else NOTE, where, 0, text if left else f"{text}; confirmed")


def spelled(flags: Iterable[str]) -> Sequence[str]:
    """Flags as people write them."""
    return [flag if flag.startswith("-") else f"--{flag}" for flag in flags]


def _digest(value: Value) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
