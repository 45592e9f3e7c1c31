"""Saving the sections of a host's settings: checked, under a version, with a line of audit, and planned anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.db import transaction

from gpus_app import device_settings, memory_settings, watch_settings
from gpus_app.models import Host, HostSetting
from gpus_app.selectors import section as section_of
from gpus_app.services import (
    request_plan,
    save_device_settings,
    save_memory_settings,
    save_section,
    save_watch_settings,
)
from models_app.convert import ENCODER_SECTION
from models_app.core.errors import SettingsError
from models_app.core.settings import Encoders, record_from_mapping, record_to_mapping, unknown_keys
from models_app.fleet_sections import FLEET_SECTIONS, NAMING, cleaned
from models_app.selectors.sight import require_whole
from models_app.services.named_files import check_folders, check_pins
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused


def save_fleet_section(
    *, host: Host, section: str, values: Mapping[str, Any], version: int, actor: Actor
) -> HostSetting:
    """Store a section if it is still at `version`. Raises Refused with a message per key, or EditConflict."""
    require(actor.user, FLEET_SECTIONS[section].level, host)
    if section in NAMING:
        require_whole(actor.user, host)
    wanted = cleaned(section, values)
    check_folders(actor.user, host, section_of(host, section).values, wanted)
    return _saved(host, section, wanted, version, actor)


def save_encoder_pins(*, host: Host, values: Mapping[str, Any], version: int, actor: Actor) -> HostSetting:
    """Store all pins of component files at once; the same errors."""
    require(actor.user, Level.EDIT, host)
    pins = cleaned_pins(values)
    check_pins(actor.user, host, section_of(host, ENCODER_SECTION).values, pins)
    return _saved(host, ENCODER_SECTION, pins, version, actor)


def cleaned_pins(values: Mapping[str, Any]) -> dict[str, Any]:
    """The pins that say something. Raises Refused."""
    problems = dict.fromkeys(unknown_keys(Encoders, values), "There is no such component.")
    try:
        pins = record_to_mapping(record_from_mapping(Encoders, values))
    except SettingsError as error:
        raise Refused(str(error)) from error
    problems |= {key: "This is not a usable path." for key, path in pins.items() if not _is_usable(path)}
    if problems:
        raise Refused("Some values cannot be used.", fields=problems)
    return {key: path.strip() for key, path in pins.items() if path.strip()}


def _is_usable(path: str) -> bool:
    return len(path) <= 1024 and path.isprintable()


def _saved(host: Host, section: str, wanted: dict[str, Any], version: int, actor: Actor) -> HostSetting:
    with transaction.atomic():
        row, changed = save_section(host, section, wanted, version, actor)
        if changed:
            request_plan(host=host, actor=actor)
    return row


def _save_watching(*, host: Host, values: Mapping[str, Any], version: int, actor: Actor) -> HostSetting:
    seconds = values.get(watch_settings.KEY)
    return save_watch_settings(host=host, seconds=seconds, version=version, actor=actor)


def _cleaned_watching(values: Mapping[str, Any]) -> dict[str, Any]:
    return watch_settings.cleaned(values.get(watch_settings.KEY))


SECTION_SAVES: Mapping[str, Callable[..., HostSetting]] = {
    memory_settings.SECTION: save_memory_settings,
    device_settings.SECTION: save_device_settings,
    watch_settings.SECTION: _save_watching,
    ENCODER_SECTION: save_encoder_pins,
    **{name: partial(save_fleet_section, section=name) for name in FLEET_SECTIONS},
}
"""Section -> what saves it: `host`, `values`, `version`, `actor`."""

SECTION_CLEANED: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    memory_settings.SECTION: memory_settings.cleaned,
    device_settings.SECTION: device_settings.cleaned,
    watch_settings.SECTION: _cleaned_watching,
    ENCODER_SECTION: cleaned_pins,
    **{name: partial(cleaned, name) for name in FLEET_SECTIONS},
}
"""Section -> what would be stored of these values; raises Refused."""


def level_for(section: str) -> Level:
    """What a person needs to change a section."""
    if section == watch_settings.SECTION:
        return Level.MANAGE
    return FLEET_SECTIONS[section].level if section in FLEET_SECTIONS else Level.EDIT
