"""Which models of a file are always loaded: nothing lets them go once they run (config-yaml.md 9, 10.3; router-api.md).

A model stays while it has no idle time, or was loaded at the start, and no other model's start stops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.export.presets.options import TRUE_WORDS
from models_app.core.export.revisions.outline import ModelOutline, Outline, Value

AT_START = "load-on-startup"
"""In presets. There a model that slept keeps its slot, and nothing but the number of slots ends it."""
_PRELOAD = "hooks.on_startup.preload"
_COMBINATIONS = ("matrix", "routing.router")
"""Keys of files that name the combinations of models that may run together, instead of groups."""


@dataclass(frozen=True, slots=True)
class _Group:
    """As routers read it, with their defaults."""

    members: Sequence[str]
    swap: bool = True
    exclusive: bool = True
    persistent: bool = False


def residents(outline: Outline) -> list[str]:
    """Ids in the order of the file; of a group whose members take turns only a lone member stays."""
    at_start = [name for name, model in outline.models.items() if str(model.flags.get(AT_START)) in TRUE_WORDS]
    if at_start or any(f"{key}.".startswith(f"{block}.") for key in outline.top for block in _COMBINATIONS):
        return at_start
    preloaded = set(_words(outline.top.get(_PRELOAD)))
    stays = {
        name for name, model in outline.models.items() if _is_kept(model, outline) or _is_among(name, model, preloaded)
    }
    if not stays:
        return []
    groups = _groups(outline)
    packs = "vramBudgetGB" in outline.top
    kept = {
        name
        for group in groups
        if not (group.swap and len(group.members) > 1)
        and (group.persistent or not (packs or _is_stopped(group, groups)))
        for name in group.members
    }
    return [name for name in outline.models if name in stays and name in kept]


def _is_kept(model: ModelOutline, outline: Outline) -> bool:
    """No idle time ends it. -1, or none, is that of the whole file."""
    own = model.keys.get("ttl", "-1")
    return (outline.top.get("globalTTL", "0") if own == "-1" else own) == "0"


def _is_among(name: str, model: ModelOutline, names: set[str]) -> bool:
    return bool(names) and not names.isdisjoint((name, *_words(model.keys.get("aliases"))))


def _groups(outline: Outline) -> list[_Group]:
    """The groups of a file, and that of the models in none."""
    names = [key.removeprefix("groups.").removesuffix(".members") for key in outline.top if _is_members(key)]
    groups = [
        _Group(
            members=[name for name in _words(outline.top[f"groups.{group}.members"]) if name in outline.models],
            swap=outline.top.get(f"groups.{group}.swap", "true") == "true",
            exclusive=outline.top.get(f"groups.{group}.exclusive", "true") == "true",
            persistent=outline.top.get(f"groups.{group}.persistent", "false") == "true",
        )
        for group in names
    ]
    grouped = {name for group in groups for name in group.members}
    return [*groups, _Group([name for name in outline.models if name not in grouped])]


def _is_members(key: str) -> bool:
    return key.startswith("groups.") and key.endswith(".members")


def _is_stopped(group: _Group, groups: Sequence[_Group]) -> bool:
    """Does the start of a model of another group stop this one's?"""
    return any(other is not group and other.exclusive and other.members for other in groups)


def _words(value: Value | None) -> Sequence[str]:
    return value if isinstance(value, list) else ()
