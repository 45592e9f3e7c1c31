"""The parts of a file that our generator never writes and a person may: scheduler, profiles, selectors, peers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from models_app.core.export.router.addresses import address_problem
from models_app.core.export.router.readers import Reader, Violation

STRATEGIES = ("pin", "warm", "spillover")
DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
MIN_SAMPLING_SECONDS = 5


def violations(
    reader: Reader,
    top: Mapping[str, Any],
    models: Mapping[str, Any],
    aliases: Mapping[str, str],
    groups: Mapping[str, Mapping[str, Any]],
) -> Iterator[Violation]:
    """What the reader refuses in these parts. The reference knows the scheduler only."""
    peers = _mapping(top.get("peers"))
    for name, peer in peers.items():
        if not isinstance(peer, dict):
            yield Violation("V-02", ("peers", name), f"peer {name} must be a mapping")
        elif not peer.get("models") or not isinstance(peer["models"], list):
            yield Violation("V-02", ("peers", name), f"peer {name} has no models")
        elif not peer.get("proxy") or address_problem(str(peer["proxy"])):
            yield Violation("V-02", ("peers", name), f"peer {name} has no usable proxy")
    known = {*models, *aliases, *_peer_models(peers)}
    yield from _scheduler(_mapping(_mapping(top.get("routing")).get("scheduler")), {*models, *aliases})
    if "profiles" not in reader.top_keys:
        return
    selectors = _mapping(top.get("selectors"))
    local = {**aliases, **{model: model for model in models}}
    yield from _selectors(selectors, known, local, groups)
    yield from _profiles(_mapping(top.get("profiles")), known | set(selectors))
    yield from _performance(_mapping(top.get("performance")))
    for name in sorted(_qualified(peers) & {*models, *aliases, *selectors}):
        yield Violation("V-03", ("models", name), f"{name!r} is also the full name of a peer's model")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _peer_models(peers: Mapping[str, Any]) -> set[str]:
    plain = {str(model) for peer in peers.values() for model in _mapping(peer).get("models") or ()}
    return plain | _qualified(peers)


def _qualified(peers: Mapping[str, Any]) -> set[str]:
    return {f"{name}/{model}" for name, peer in peers.items() for model in _mapping(peer).get("models") or ()}


def _scheduler(scheduler: Mapping[str, Any], known: set[str]) -> Iterator[Violation]:
    where = ("routing", "scheduler")
    if scheduler.get("use") not in (None, "", "fifo"):
        yield Violation("V-02", (*where, "use"), f"unknown scheduler {scheduler['use']!r}; there is only fifo")
    priority = _mapping(_mapping(_mapping(scheduler.get("settings")).get("fifo")).get("priority"))
    for name in priority:
        if name not in known:
            path = (*where, "settings", "fifo", "priority", name)
            yield Violation("V-02", path, f"a priority for {name!r}, which is no model here")


def _selectors(
    selectors: Mapping[str, Any],
    known: set[str],
    local: Mapping[str, str],
    groups: Mapping[str, Mapping[str, Any]],
) -> Iterator[Violation]:
    """`local` are the names of models of this file with the ids behind them."""
    for name, given in selectors.items():
        where = ("selectors", name)
        selector = _mapping(given)
        strategy = selector.get("strategy")
        if not name.strip() or name in local:
            yield Violation("V-03", where, f"selector {name!r} has no name of its own")
        if strategy not in STRATEGIES:
            yield Violation("V-02", where, f"selector {name}: strategy must be one of {', '.join(STRATEGIES)}")
        targets = selector.get("targets")
        if not isinstance(targets, list) or not targets:
            yield Violation("V-02", where, f"selector {name} has no targets")
            continue
        reachable = set(local) if strategy == "warm" else known
        names = [str(target) for target in targets]
        for index, target in enumerate(names):
            if target in selectors or target not in reachable:
                path = (*where, "targets", index)
                yield Violation("V-02", path, f"selector {name} points to {target!r}, which is no model here")
        if strategy == "spillover":
            yield from _spillover(name, selector, [local.get(target, target) for target in names], groups)


def _spillover(
    name: str, selector: Mapping[str, Any], targets: list[str], groups: Mapping[str, Mapping[str, Any]]
) -> Iterator[Violation]:
    """Targets that take over from each other must differ and be able to run at the same time. A matrix is not asked."""
    where = ("selectors", name)
    reserved = _mapping(selector.get("settings")).get("spillover", 1)
    if not isinstance(reserved, int) or reserved < 1:
        yield Violation("V-02", (*where, "settings"), f"selector {name}: spillover must be at least 1")
    if len(set(targets)) < len(targets):
        yield Violation("V-02", (*where, "targets"), f"selector {name} names one model twice")
    together = any(not fields["swap"] and set(targets) <= set(fields["members"]) for fields in groups.values())
    if groups and len(set(targets)) > 1 and not together:
        yield Violation("V-02", (*where, "targets"), f"the targets of selector {name} share no group with swap: false")


def _profiles(profiles: Mapping[str, Any], known: set[str]) -> Iterator[Violation]:
    for name, given in profiles.items():
        where = ("profiles", name)
        if not isinstance(given, dict):
            yield Violation("V-02", where, f"profile {name}: the old list form is no longer read")
            continue
        pins = _mapping(given.get("pins"))
        if not name.strip() or not pins:
            yield Violation("V-02", where, f"profile {name!r} needs a name and at least one pin")
        for pin, target in pins.items():
            if not pin.strip() or (target and str(target) not in known):
                yield Violation("V-02", (*where, "pins", pin), f"profile {name} pins {pin!r} to no model of this file")


def _performance(block: Mapping[str, Any]) -> Iterator[Violation]:
    every = block.get("every")
    if every is None:
        return
    parts = DURATION.findall(str(every))
    if not parts or DURATION.sub("", str(every)):
        yield Violation("V-02", ("performance", "every"), f"{every!r} is no duration")
    elif sum(float(figure) * SECONDS[unit] for figure, unit in parts) < MIN_SAMPLING_SECONDS:
        yield Violation("V-02", ("performance", "every"), f"every must be at least {MIN_SAMPLING_SECONDS}s")
