"""What llama-server's router does with loads and reloads: for previews, for our checks, and for a stand-in in tests
(router-llama-server.md 3.2, 6.2, 6.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from models_app.core.export.presets.grammar import PresetSyntaxError
from models_app.core.export.presets.options import IGNORED, OVERWRITTEN, options
from models_app.core.export.presets.reading import (
    Options,
    PresetError,
    byte_order,
    read,
    refusal_at_start,
    two_valued,
)

LOADS, REFUSED, FULL = 200, 400, 500


def models_max(estimates_gb: Iterable[float | None], budget_gb: float) -> int:
    """The most models that fit the budget whichever they are: the N largest must fit together.

    None uses no GPU memory and adds nothing; 0 is an unknown estimate and counts as the whole budget. Without a budget
    one at a time.
    """
    sizes = sorted((_counted(size, budget_gb) for size in estimates_gb), reverse=True)
    if budget_gb <= 0:
        return 1
    together = 0.0
    for count, size in enumerate(sizes):
        together += size
        if together > budget_gb + 1e-9:
            return max(1, count)
    return max(1, len(sizes))


def _counted(size_gb: float | None, budget_gb: float) -> float:
    if size_gb is None:
        return 0.0
    return size_gb if size_gb > 0 else budget_gb


@dataclass(frozen=True, slots=True)
class Eviction:
    """Which models stop for one that is asked for. `status` is the answer of a load call, None for a request."""

    evict: tuple[str, ...] = ()
    waits: bool = False
    status: int | None = None


def evict(
    limit: int,
    loaded: Sequence[str],
    target: str,
    *,
    busy: Collection[str] = (),
    loading: Collection[str] = (),
    by_call: bool = False,
) -> Eviction:
    """`loaded` has the least recently used first. Only idle ones go; memory is not looked at."""
    done = LOADS if by_call else None
    if target in loaded or target in loading:
        return Eviction(status=REFUSED if by_call else None)
    excess = len(loaded) + len(loading) + 1 - limit
    if limit <= 0 or excess <= 0:
        return Eviction(status=done)
    idle = [name for name in loaded if name not in busy]
    if len(idle) < excess:
        return Eviction(status=FULL) if by_call else Eviction(waits=True)
    return Eviction(tuple(idle[:excess]), status=done)


@dataclass(frozen=True, slots=True)
class Reload:
    """What a reload call does. `loads_hang`: from then on no load answers until a good reload."""

    status: int
    stopped: tuple[str, ...]
    listed: tuple[str, ...]
    loads_hang: bool = False


def reload(old: str, new: str | None, running: Collection[str]) -> Reload:
    """The router had `old` and is told to read `new` (None: the file is gone). `old` must be a file that it read."""
    before = read(old)
    listed = tuple(before.models)
    if new is None:
        return Reload(FULL, (), listed)
    try:
        after = read(new)
    except (PresetError, PresetSyntaxError):
        return Reload(FULL, (), listed)
    stopped = tuple(name for name in changed_sections(before.models, after.models) if name in running)
    still_running = set(running) - set(stopped)
    known = {name: set(before.aliases(name)) for name in before.models if name in after.models}
    for name in known:
        if name in still_running:
            continue
        if two_valued() & after.models[name].keys():
            return Reload(FULL, stopped, _sorted(known), loads_hang=True)
        others = {alias for other, aliases in known.items() if other != name for alias in (other, *aliases)}
        known[name] = set(after.aliases(name)) - others
    for name in after.models:
        if name in known:
            continue
        names = {name, *after.aliases(name)}
        taken = {alias for other, aliases in known.items() for alias in (other, *aliases)}
        if names & taken or two_valued() & after.models[name].keys():
            return Reload(FULL, stopped, _sorted(known), loads_hang=True)
        known[name] = set(after.aliases(name))
    return Reload(LOADS, stopped, _sorted(known))


def changed_sections(before: Mapping[str, Options], after: Mapping[str, Options]) -> tuple[str, ...]:
    """Models that a reload would stop if they ran: their section is gone, or says something else."""
    return tuple(
        name
        for name, given in before.items()
        if name not in after or (given != after[name] and _compared(given) != _compared(after[name]))
    )


def changed_models(old: str, new: str, running: Collection[str]) -> tuple[str, ...]:
    """Running models that a reload would stop."""
    return reload(old, new, running).stopped


def starts(text: str) -> bool:
    """Would the router start with this file?"""
    try:
        return not refusal_at_start(read(text))
    except (PresetError, PresetSyntaxError):
        return False


def _compared(given: Options) -> dict[str, str]:
    """Options whose change stops a model: all but further names and what the router sets itself."""
    unseen = {option.name for option in options() if option.handling in (IGNORED, OVERWRITTEN)} | {"alias"}
    return {name: value for name, value in given.items() if name not in unseen}


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=byte_order))
