"""Raw parts of a router's file that people keep by hand, merged last into what planning writes (web.md 12.5).

A fragment may set any key that planning does not write, at the top or inside an entry, or be a whole entry of its own.
Where both say something the plan's word stands and a warning names the key. Lists of aliases and of API keys add up.
Who groups the models by hand, by `groups`, `matrix` or `routing.router`, has planning write no groups at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from models_app.core.export import presets
from models_app.core.export.document import Document, Entry, Skipped
from models_app.core.export.extra_models import extra_model, lines_as_written
from models_app.core.export.groups import assign_groups
from models_app.core.export.key_blocks import KEY_LIST
from models_app.core.export.macros import neutral
from models_app.core.settings import GroupSpec, Settings

YAML, PRESETS = "yaml", "presets"
"""The two forms of a router's file: what is kept for one is not written into the other."""
EVERYWHERE = "*"
"""The section of a preset file that holds for every model."""
ADDED = frozenset({"aliases", KEY_LIST})
"""Lists that both may add to."""
FIRST = ("macros",)
"""Blocks that readers of the file look for on top."""
LAST = ("groups", "matrix", "routing", "listeners", "peers", "hooks")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Fragments:
    """What is kept for one host in one form. `models`: served id -> keys; one with `cmd` is an entry of its own."""

    top: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NOTHING)


NO_FRAGMENTS = Fragments()


def form_of(dialect: str) -> str:
    return PRESETS if dialect == presets.SLUG else YAML


def groups_by_hand(top: Mapping[str, Any]) -> bool:
    """Whether a file says itself which models run together."""
    routing = top.get("routing")
    router = routing.get("router") if isinstance(routing, Mapping) else None
    return bool(top.get("groups")) or top.get("matrix") is not None or bool(router)


def entries_apart(settings: Settings, fragments: Fragments, taken: Collection[str]) -> tuple[Settings, Fragments]:
    """Whole entries that say what they take are extra models: each router gets them in its own words.

    `taken` are ids of entries that planning writes.
    """
    own = {
        name: keys
        for name, keys in fragments.models.items()
        if keys.get("cmd") and isinstance(extra_model(name, keys, set(taken)), Entry)
    }
    if not own:
        return settings, fragments
    rest = {name: keys for name, keys in fragments.models.items() if name not in own}
    return replace(settings, extra_models={**settings.extra_models, **own}), replace(fragments, models=rest)


def with_fragments(document: Document, fragments: Fragments, groups: Sequence[GroupSpec] = ()) -> Document:
    """The document with everything that is kept by hand. Entries of their own join the planned groups by their id."""
    if not fragments.top and not fragments.models:
        return document
    lost: list[str] = []
    models = [_with_keys(item, fragments.models, lost) for item in document.models]
    known = {item.id for item in models if isinstance(item, Entry)}
    others = {name: keys for name, keys in fragments.models.items() if name not in known}
    # In YAML an entry without a command would make the router refuse the whole file.
    has_commands = form_of(document.dialect) == YAML
    idle = sorted(name for name, keys in others.items() if has_commands and not keys.get("cmd"))
    own = [_entry(name, keys) for name, keys in others.items() if name not in idle]
    models += own
    top, tail = _around(document, fragments.top, lost)
    if "groups" in tail and not groups_by_hand(fragments.top):
        tail["groups"] = _joined(tail["groups"], [entry.id for entry in own if entry.id != EVERYWHERE], groups)
    notes = [f"WARNING: planning writes this itself, so it is not taken from a raw fragment: {key}" for key in lost]
    notes += [f"WARNING: no model has this id, so its raw keys are left out: {neutral(name)}" for name in idle]
    return replace(document, notes=(*document.notes, *notes), top=top, tail=tail, models=tuple(models))


def _joined(
    planned: Mapping[str, Mapping[str, Any]], ids: Sequence[str], specs: Sequence[GroupSpec]
) -> dict[str, dict[str, Any]]:
    """The groups with further members."""
    result = {name: dict(fields) for name, fields in planned.items()}
    for name, fields in assign_groups(specs, ids, {}).groups.items():
        if fields["members"]:
            held = result.setdefault(name, {**fields, "members": []})
            held["members"] = [*held["members"], *fields["members"]]
    return result


def _with_keys(item: Entry | Skipped, models: Mapping[str, Mapping[str, Any]], lost: list[str]) -> Entry | Skipped:
    keys = models.get(item.id) if isinstance(item, Entry) else None
    if not keys or not isinstance(item, Entry):
        return item
    where = f"models.{item.id}"
    if "cmd" in keys:
        lost.append(f"{where}.cmd")
    rest = {key: value for key, value in keys.items() if key != "cmd"}
    return replace(item, fields=merged(item.fields, rest, where, lost))


def merged(written: Mapping[str, Any], given: Mapping[str, Any], where: str, lost: list[str]) -> dict[str, Any]:
    """Both together; `lost` gets the keys of which both say something else."""
    result = dict(written)
    for key, value in given.items():
        place = f"{where}.{key}" if where else key
        if key not in result:
            result[key] = value
        elif isinstance(result[key], Mapping) and isinstance(value, Mapping):
            result[key] = merged(result[key], value, place, lost)
        elif key in ADDED and isinstance(value, list):
            result[key] = list(dict.fromkeys([*result[key], *value]))
        elif result[key] != value:
            lost.append(place)
    return result


def _entry(name: str, keys: Mapping[str, Any]) -> Entry:
    """An entry that only the fragment describes."""
    command = tuple(lines_as_written(str(keys["cmd"]))) if keys.get("cmd") is not None else ()
    fields = {key: value for key, value in keys.items() if key != "cmd"}
    return Entry(name, command, fields, comments=("kept as it was written by hand",), base=name, as_written=True)


def _around(document: Document, given: Mapping[str, Any], lost: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    by_hand = groups_by_hand(given)
    tail = {name: value for name, value in document.tail.items() if not by_hand}
    last = {name: value for name, value in given.items() if name in LAST}
    first = {name: value for name, value in given.items() if name in FIRST}
    rest = {name: value for name, value in given.items() if name not in (*FIRST, *LAST)}
    return merged({**first, **document.top}, rest, "", lost), merged(tail, last, "", lost)
