"""Sections of a host's settings that planning and writing read as they are: which keys each has, who may change it.

The fields come from the catalogue; a section holds set keys only, and none that equals its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models_app.core.errors import SettingsError
from models_app.core.fields import SETTINGS_FIELDS
from models_app.core.settings import GroupSpec, Settings, record_to_mapping, settings_from_mapping
from models_app.core.state.app import is_address
from models_app.core.state.edits import put_enhancers
from models_app.core.state.extra_models import MODEL_FLAGS, clean_extra_models
from models_app.core.state.loading import migrate_ladder, normalise
from models_app.core.state.section_forms import slot_cache_errors
from models_app.core.state.sidecar import Sidecar
from models_app.core.state.values import field_problem
from quartermaster_site.access.permissions import Level
from quartermaster_site.errors import Refused

MOST_ROWS = 1000
"""Of a list or map in one section."""


@dataclass(frozen=True, slots=True)
class FleetSection:
    title: str
    level: Level
    keys: tuple[str, ...]


def _keys(group: str) -> tuple[str, ...]:
    return tuple(field.key for field in SETTINGS_FIELDS if field.group == group)


FLEET_SECTIONS: Mapping[str, FleetSection] = {
    "guards": FleetSection("Guards", Level.MANAGE, _keys("guards")),
    "sampling": FleetSection("Sampling", Level.EDIT, _keys("sampling")),
    "kv": FleetSection("KV cache", Level.EDIT, _keys("kv")),
    "advanced": FleetSection("Advanced", Level.EDIT, _keys("advanced")),
    "groups": FleetSection("Groups", Level.MANAGE, ("groups",)),
    "names": FleetSection("Names", Level.EDIT, ("displayNames",)),
    "enhancers": FleetSection("Prompt enhancers", Level.EDIT, ("promptEnhancers",)),
    "declared": FleetSection("Models declared by hand", Level.MANAGE, ("extraImageModels",)),
}
"""Section -> its keys. Groups bind addresses, guards protect the machine, and a model declared by hand names files
that nobody found: these are for administrators."""

NAMING = frozenset({"groups", "names", "enhancers", "declared"})
"""Sections whose values name models. They are saved whole, so by those alone from whom none of these is hidden."""

_FIELDS = {field.key: field for field in SETTINGS_FIELDS}


def section_of(key: str) -> str:
    """The section that holds a key, "" where none of these does."""
    return next((name for name, section in FLEET_SECTIONS.items() if key in section.keys), "")


def cleaned(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of a section: set keys, checked. Raises Refused with a message per key."""
    known = FLEET_SECTIONS[name].keys
    problems = {key: "There is no such setting." for key in values if key not in known}
    kept: dict[str, Any] = {}
    for key in known:
        if values.get(key) is None:
            continue
        try:
            kept |= _checked(key, values[key])
        except (SettingsError, ValueError) as error:
            problems[key] = str(error)
    if problems:
        raise Refused("Some values cannot be used.", fields=problems)
    return kept


def _checked(key: str, value: Any) -> dict[str, Any]:
    """The key with its value as it is stored; nothing for a default. Raises ValueError or SettingsError."""
    if isinstance(value, list | tuple | Mapping) and len(value) > MOST_ROWS:
        raise ValueError(f"At most {MOST_ROWS:,} of them.")
    settings = settings_from_mapping({key: value})
    field = replace(_FIELDS[key], nullable=True)
    if problem := field_problem(field, record_to_mapping(settings, sparse=False)[key]):
        raise ValueError(problem)
    settings = _tidy(migrate_ladder(normalise(settings)))
    if problem := _PROBLEMS.get(key, _none)(settings):
        raise ValueError(problem)
    return {name: item for name, item in record_to_mapping(settings).items() if name == key}


def _tidy(settings: Settings) -> Settings:
    """Lists and maps without rows that say nothing."""
    names = {key.strip(): name.strip() for key, name in settings.display_names.items()}
    return replace(
        settings,
        prompt_enhancers=put_enhancers(Sidecar(), settings.prompt_enhancers).prompt_enhancers or (),
        extra_image_models=clean_extra_models(settings.extra_image_models),
        display_names={key: name for key, name in names.items() if key and name},
    )


def _none(settings: Settings) -> str:
    return ""


def _groups_problem(settings: Settings) -> str:
    return next(filter(None, map(_group_problem, settings.groups)), "")


def _group_problem(group: GroupSpec) -> str:
    if not group.name.strip():
        return "Every group needs a name."
    if group.listen.strip() and not is_address(group.listen.strip()):
        return f"{group.listen[:64]}: give an address as host:port, for example 127.0.0.1:1250."
    return ""


def _flags_problem(settings: Settings) -> str:
    bad = next((row.name for row in settings.extra_image_models if row.model_flag not in MODEL_FLAGS), None)
    return "" if bad is None else f"{bad[:64]}: the flag must be -m or --diffusion-model."


def _slot_cache_problem(settings: Settings) -> str:
    return " ".join(slot_cache_errors(record_to_mapping(settings.slot_cache, sparse=False)).values())


_PROBLEMS = {"groups": _groups_problem, "extraImageModels": _flags_problem, "slotCache": _slot_cache_problem}
