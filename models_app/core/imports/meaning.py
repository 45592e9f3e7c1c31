"""What a router's file means to its router, so that two files can be compared beyond their words.

Macros are expanded, defaults filled in, commands split; order, comments, quoting and names of groups leave no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from models_app.core.errors import LaunchError
from models_app.core.export import load, presets
from models_app.core.export.presets import reading
from models_app.core.export.router.load_rules import read_config
from models_app.core.imports.router_file import FileEntry, read_router_file
from models_app.core.launch.tokens import POSIX, split_command
from models_app.core.spawn_guard.options import SEPARATOR

OURS = "quartermaster"
ANNOTATIONS = ("estVramGB", "estRamGB")
"""Keys that say something about an entry and change nothing of what runs."""
THERE = "there"
"""Instead of a whole entry that the other file lacks."""
_SHARED = ("macros", "globalTTL")


def meaning_of(data: bytes, dialect: str, rules: str = POSIX) -> dict[str, Any]:
    """{"models": {id: {...}}, "top": {...}, "groups": [...]}; plain JSON. Raises `ImportFailed` as the reader does."""
    file = read_router_file(data, dialect, rules)
    if dialect == presets.SLUG:
        found = reading.read(reading.decode(data))
        return {"models": {name: _section(found, name) for name in found.models}, "top": {}, "groups": []}
    config = load.load(load.decode(data)).value or {}
    shared = {key: config[key] for key in _SHARED if key in config}
    loaded = read_config(dialect, config)
    models = {
        entry.id: {"cmd": _words(entry, rules), **_keys(dialect, entry.id, entry.whole, shared)}
        for entry in file.entries
    }
    top = {key: value for key, value in config.items() if key not in ("models", "groups", "matrix", *_SHARED)}
    given = {key: value for key, value in loaded.top.items() if key not in ("models", "groups", "matrix")}
    return {
        "models": models,
        "top": {**top, **given, "macros": config.get("macros") or {}, "matrix": config.get("matrix")},
        "groups": _groups(loaded.groups, bool(config.get("matrix"))),
    }


def _words(entry: FileEntry, rules: str) -> Any:
    """The words of a command; of one that only its router can read those between its macros."""
    guard = [*entry.guard, SEPARATOR] if entry.guard else []
    return [*guard, *entry.argv] or words_of(entry.whole.get("cmd"), rules)


def words_of(command: Any, rules: str = POSIX) -> Any:
    """The words of a command, whatever its lines and comments; what cannot be split as it stands."""
    if not isinstance(command, str):
        return command
    try:
        return split_command(command, rules)
    except LaunchError:
        return command


def _section(found: reading.Presets, name: str) -> dict[str, Any]:
    given = dict(found.models[name])
    given.pop("tags", None)
    return {**reading.passed(given), **given, "alias": list(found.aliases(name))}


def _keys(dialect: str, name: str, whole: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Each entry alone, so that its port does not depend on the others."""
    fields = {key: value for key, value in whole.items() if key != "cmd"}
    loaded = read_config(dialect, {**shared, "models": {name: {**fields, "cmd": "x ${PORT}"}}})
    known = dict(loaded.models.get(name, {}))
    known.pop("cmd", None)
    # Later keys win: those that the router does not know are kept as they stand.
    return {**{key: value for key, value in fields.items() if key not in known and key != "macros"}, **_jsonable(known)}


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _jsonable(inner) for key, inner in value.items()}
    return [_jsonable(item) for item in value] if isinstance(value, list | tuple) else value


def _groups(groups: Mapping[str, Mapping[str, Any]], matrix: bool) -> list[list[Any]]:
    """Who swaps with whom; empty groups and names say nothing."""
    if matrix:
        return []
    found = []
    for fields in groups.values():
        switches = [bool(fields.get(key)) for key in ("swap", "exclusive", "persistent")]
        if members := sorted(fields.get("members") or ()):
            found.append([*switches, members])
    return sorted(found, key=str)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(place, before, after) of everything that `after` means otherwise; annotations of ours are no difference."""
    found = list(_models(before["models"], after["models"]))
    found += _differing("", _without_annotations(before["top"]), _without_annotations(after["top"]))
    if before["groups"] != after["groups"]:
        found.append(("groups", before["groups"], after["groups"]))
    return found


def _models(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys((*before, *after)):
        if name not in after or name not in before:
            yield (f"models.{name}", THERE if name in before else None, THERE if name in after else None)
        else:
            yield from _differing(
                f"models.{name}.", _without_annotations(before[name]), _without_annotations(after[name])
            )


def _differing(prefix: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    keys = dict.fromkeys((*before, *after))
    return [(f"{prefix}{key}", before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]


def _without_annotations(fields: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in fields.items() if key not in ANNOTATIONS and value not in (None, {}, [], "")}
    if isinstance(metadata := kept.get("metadata"), Mapping):
        foreign = {name: value for name, value in metadata.items() if name != OURS}
        kept = {**kept, "metadata": foreign} if foreign else {key: kept[key] for key in kept if key != "metadata"}
    return kept
