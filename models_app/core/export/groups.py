"""Which models swap together, and which address serves them (config-yaml.md 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models_app.core.launch.cpu_device import CPU, keeps_off_gpus
from models_app.core.settings.overrides import Override
from models_app.core.settings.records import GroupSpec
from models_app.core.state.globs import glob_match

HELPER = {"swap": False, "exclusive": False, "persistent": True}
COEXIST_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "sam": HELPER,
    "tts": HELPER,
    "asr": HELPER,
    "cpu": {"swap": True, "exclusive": False, "persistent": False, "pool": "ram"},
}
"""Coexistence sets in written order: models that need no VRAM, kept out of the swapping of the others."""

EXCLUSIVE = "exclusive"
LEFTOVER = "default"


@dataclass(frozen=True, slots=True)
class Assignment:
    """`groups` in written order, `listeners` by address in first-seen order."""

    groups: dict[str, dict[str, Any]]
    listeners: dict[str, dict[str, Any]]


def coexist_set(model_class: str, engine: str, override: Override) -> str:
    """The coexistence set of a model, "" for none. `engine` is the resolved server of a speech model."""
    if override.swap_group.strip().lower() == CPU or (not override.swap_group.strip() and is_cpu_model(override)):
        return CPU
    if model_class == "tts":
        return "tts" if engine == "ttscpp" else ""
    return model_class if model_class in ("sam", "asr") else ""


def is_cpu_model(override: Override) -> bool:
    return keeps_off_gpus(override)


def swap_group_error(override: Override) -> str:
    """Why an override may not be saved, "" when it may: a GPU model in the cpu group holds VRAM nobody accounts for."""
    if override.swap_group.strip().lower() == CPU and not is_cpu_model(override):
        return "a model that runs on the GPU cannot be in the cpu swap group; set its device to cpu first"
    return ""


def coexist_name(name: str, specs: Sequence[GroupSpec]) -> str:
    """The group name of a set: `-auto` is appended when a settings group has that name."""
    taken = {spec.name.strip().lower() for spec in specs}
    return f"{name}-auto" if name in taken else name


def assign_groups(
    specs: Sequence[GroupSpec], emitted_ids: Sequence[str], coexist: Mapping[str, Sequence[str]]
) -> Assignment:
    """Groups and listeners of a file. Groups named twice in the settings are merged: a reader refuses repeats."""
    outside = {model_id for ids in coexist.values() for model_id in ids}
    rest = [model_id for model_id in emitted_ids if model_id not in outside]
    groups = _glob_groups(specs, rest) if specs else {EXCLUSIVE: _group(True, rest)}
    helpers = []
    for name, fields in COEXIST_FIELDS.items():
        wanted = set(coexist.get(name, ()))
        members = [model_id for model_id in emitted_ids if model_id in wanted]
        if members:
            helpers.append(coexist_name(name, specs))
            groups[helpers[-1]] = {**fields, "members": members}
    return Assignment(groups, _listeners(specs, helpers))


def _merged(specs: Sequence[GroupSpec]) -> dict[str, list[GroupSpec]]:
    named: dict[str, list[GroupSpec]] = {}
    for spec in specs:
        named.setdefault(spec.name.strip(), []).append(spec)
    return named


def _group(swap: bool, members: list[str]) -> dict[str, Any]:
    return {"swap": swap, "exclusive": True, "members": members}


def _glob_groups(specs: Sequence[GroupSpec], ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    named = _merged(specs)
    groups = {name: _group(not any(spec.coexist for spec in same), []) for name, same in named.items()}
    globs = [(spec.name.strip(), glob) for spec in specs for glob in spec.match]
    leftover: list[str] = []
    for model_id in ids:
        name = next((name for name, glob in globs if glob_match(glob, model_id)), None)
        (leftover if name is None else groups[name]["members"]).append(model_id)
    if leftover:
        groups.setdefault(LEFTOVER, _group(True, []))["members"] += leftover
    return groups


def _listeners(specs: Sequence[GroupSpec], helpers: Sequence[str]) -> dict[str, dict[str, Any]]:
    addresses: dict[str, list[str]] = {}
    for spec in specs:
        if address := spec.listen.strip():
            names = addresses.setdefault(address, [])
            if spec.name.strip() not in names:
                names.append(spec.name.strip())
    return {address: {"groups": [*names, *helpers]} for address, names in addresses.items()}
