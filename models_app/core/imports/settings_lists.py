"""Folders, executables, shared variants, keys and hand-declared models of a generate file and its sidecar, as items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from models_app.core.export.key_blocks import KEY_LIST, KEY_SCOPES
from models_app.core.imports.report import Item, Kind, Needs, Target
from models_app.core.imports.settings_said import ELLIPSIS, MASKED, Files, Said, lost, variant_items
from models_app.core.launch.backends import kind_of
from models_app.core.settings import record_to_mapping, settings_from_mapping
from models_app.core.settings_files.reading import place_text
from models_app.core.state.extra_models import merge_extra_models
from models_app.core.state.sidecar import Sidecar

FOLDERS, BACKENDS, VARIANTS, KEYS, BY_HAND, PROCESS = (
    "folders",
    "backends",
    "shared variants",
    "keys",
    "models by hand",
    "process",
)
"""Headings of the report."""
_KIND_OF_EXECUTABLE = {"serverExe": "llama", "sdServerExe": "sd", "ttsServerExe": "tts", "asrServerExe": "asr"}
_OTHER_PROGRAM = "It belongs to the program that had these files; this one has its own."
KEY_BLOCKS = frozenset({KEY_LIST, KEY_SCOPES})
_BLANK = "Blank: nothing is set."
_APP_NOTES = {
    "adminAllow": "Who may reach the pages is set by an administrator of this program, and not imported.",
    "hfToken": "A token is not taken over from a file; give it to the program in its environment.",
}


def list_items(files: Files) -> Iterator[Item]:
    """All of these, what others name first."""
    yield from _folders(files)
    yield from _backends(files)
    yield from _variants(files)
    yield from _keys(files)
    yield from _image_models(files)
    yield from _whole_entries(files)
    yield from _fragments(files)
    yield from _process(files)


def _folders(files: Files) -> Iterator[Item]:
    """The main folder, those of categories, those that only this program can name; each once."""
    seen: set[tuple[str, str]] = set()
    for said, category in _named_folders(files):
        path = said.value.strip()
        own = files.in_sidecar("categoryRoots", category) if category else None
        if own is not None and said.source.startswith("settings.categoryRoots"):
            yield lost(said, FOLDERS, f"The sidecar names another folder in line {own.line:,}, and that counts.")
        elif not path:
            yield lost(said, FOLDERS, _BLANK)
        elif (path, category) not in seen:
            seen.add((path, category))
            yield Item(said.source, said.line, Target(Kind.ROOT, path), category, FOLDERS, needs=Needs.MANAGE)


def _named_folders(files: Files) -> Iterator[tuple[Said, str]]:
    if main := files.in_file("modelsRoot"):
        yield main, ""
    for category in files.top.get("categoryRoots", {}):
        if said := files.in_sidecar("categoryRoots", category):
            yield said, category
    for category in files.settings.get("categoryRoots", {}):
        if said := files.in_file("categoryRoots", category):
            yield said, category
    if files.file is not None:
        for index, folder in enumerate(files.file.content.own.folders):
            line = files.file.line_of(("settings", "folders", index))
            yield Said(f"settings.folders[{index}]", line, folder.path), folder.category


def _backends(files: Files) -> Iterator[Item]:
    own = files.in_sidecar("backendList")
    said, others = files.counting("backends", own if own and own.value else None, BACKENDS)
    yield from others
    registered = set()
    for index, row in enumerate(said.value if said else ()):
        path = ("backendList", index) if said is own else ("backends", index)
        at = files.in_sidecar(*path) if said is own else files.in_file(*path)
        if at is not None:
            registered.add(str(row.get("path", "")).strip())
            yield _backend(at, row)
    yield from _executables(files, registered)
    for index in range(len(files.top.get("backendSources", ()))):
        if source := files.in_sidecar("backendSources", index):
            yield lost(source, BACKENDS, "Builds are installed from the catalogue, not from repositories of one's own.")


def _executables(files: Files, registered: set[str]) -> Iterator[Item]:
    """The keys from before there was a registry, where they name more than it does."""
    for key, kind in _KIND_OF_EXECUTABLE.items():
        own = files.in_sidecar("backends", key)
        said, others = files.counting(key, own if own and own.value.strip() else None, BACKENDS)
        yield from others
        if said is None:
            continue
        path = said.value.strip()
        if path and path not in registered:
            yield _backend(said, {"kind": kind, "path": path})
        elif said is not own:
            yield lost(said, BACKENDS, "It stands in the list of backends." if path else _BLANK)


def _backend(said: Said, row: Mapping[str, Any]) -> Item:
    path, kind = str(row.get("path", "")).strip(), kind_of(str(row.get("kind", "")))
    if kind is None:
        return lost(
            said, BACKENDS, f"{str(row.get('kind', ''))[:40] or 'No kind'}: nothing here is run by such a program."
        )
    if "/" not in path and "\\" not in path:
        return lost(said, BACKENDS, "A name alone: it is looked for on the search path without being registered.")
    value = {**row, "kind": kind.name, "path": path}
    return Item(said.source, said.line, Target(Kind.BACKEND, path), value, BACKENDS, needs=Needs.MANAGE)


def _variants(files: Files) -> Iterator[Item]:
    own = files.in_sidecar("defaultVariants")
    said, others = files.counting("defaultVariants", own, VARIANTS)
    yield from others
    for index, row in enumerate(said.value if said else ()):
        path = ("defaultVariants", index)
        at = files.in_sidecar(*path) if said is own else files.in_file(*path)
        name = str(row.get("name", "")).strip()
        if at is None or not name:
            yield lost(at or Said("defaultVariants", 0, row), VARIANTS, "A variant without a name makes nothing.")
            continue
        fields = {key: value for key, value in row.items() if key != "name"}
        said_of_it = Said(at.source, at.line, fields)
        yield from variant_items(said_of_it, Target(Kind.FLEET_VARIANT, variant=name), VARIANTS, name)


def _keys(files: Files) -> Iterator[Item]:
    own = files.in_sidecar("apiKeys")
    said, others = files.counting("apiKeys", own, KEYS)
    yield from (lost(Said(item.source, item.line, None), KEYS, item.note, secret=True) for item in others)
    for index in range(len(said.value) if said else 0):
        at = files.in_sidecar("apiKeys", index) if said is own else files.in_file("apiKeys", index)
        if at is not None:
            yield _key(at)


def _key(said: Said) -> Item:
    name = str(said.value.get("name", "")).strip()
    if ELLIPSIS in str(said.value.get("key", "")):
        return lost(said, KEYS, MASKED, secret=True)
    note = "" if said.value.get("models") else "No list of models: this key opens every model."
    target = Target(Kind.API_KEY, name)
    return Item(said.source, said.line, target, said.value, KEYS, note=note, needs=Needs.MANAGE, secret=True)


def _image_models(files: Files) -> Iterator[Item]:
    """The lists of both files as one: the sidecar's rows stand for the file's of the same name."""
    given = {"extraImageModels": files.settings.get("extraImageModels", [])}
    own = files.sidecar.content if files.sidecar else Sidecar()
    rows = settings_from_mapping(given).extra_image_models
    merged = merge_extra_models(rows, own.extra_image_models, own.removed_extra_image_models)
    said = files.in_sidecar("extraImageModels") or files.in_file("extraImageModels")
    if said is not None and merged:
        value = [record_to_mapping(row) for row in merged]
        target = Target(Kind.SETTING, "declared", field="extraImageModels")
        yield Item(said.source, said.line, target, value, BY_HAND)
    elif removed := files.in_sidecar("removedExtraImageModels"):
        text = (
            "They are removed from the generate file's list." if rows else "Nothing is declared that could be removed."
        )
        yield lost(removed, BY_HAND, text)


def _whole_entries(files: Files) -> Iterator[Item]:
    for name in files.settings.get("extraModels", {}):
        if said := files.in_file("extraModels", name):
            note = "A whole entry of the router's file: it is kept as it is written."
            target = Target(Kind.FRAGMENT, name)
            yield Item(said.source, said.line, target, dict(said.value), BY_HAND, name, note=note, needs=Needs.MANAGE)


def _fragments(files: Files) -> Iterator[Item]:
    """Raw keys that an export has kept, each on its own."""
    own = files.file.content.own.fragments if files.file else {}
    for served_id, keys in own.items():
        for key, value in keys.items():
            path = ("settings", "fragments", served_id, key)
            said = Said(place_text(path), files.file.line_of(path) if files.file else 0, value)
            if ELLIPSIS in str(value):
                yield lost(said, BY_HAND, MASKED, secret=True)
            else:
                target = Target(Kind.FRAGMENT, served_id, field=key)
                secret = key in KEY_BLOCKS
                yield Item(said.source, said.line, target, value, BY_HAND, served_id, needs=Needs.MANAGE, secret=secret)
    if files.file is not None and files.file.content.own.preset_fragments:
        line = files.file.line_of(("settings", "presetFragments"))
        yield lost(Said("settings.presetFragments", line, None), BY_HAND, "Raw keys of presets are not imported.")


def _process(files: Files) -> Iterator[Item]:
    """Settings of a process: of these only watching is a setting of a host."""
    keys = dict.fromkeys([*files.top.get("app", {}), *files.settings.get("app", {})])
    for key in keys:
        said = files.in_sidecar("app", key) or files.in_file("app", key)
        if said is None:
            continue
        if seconds := _poll_seconds(key, said.value):
            target = Target(Kind.SETTING, "watching", field="pollSec")
            yield Item(said.source, said.line, target, seconds[0], PROCESS, needs=Needs.MANAGE)
        else:
            yield lost(said, PROCESS, _APP_NOTES.get(key, _OTHER_PROGRAM), secret=key == "hfToken")


def _poll_seconds(key: str, value: Any) -> tuple[int] | None:
    if key == "watchModelsIntervalSec" and value:
        return (int(value),)
    return (0,) if key == "watchModels" and value is False else None
