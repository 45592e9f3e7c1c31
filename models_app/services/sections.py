"""Saving the sections of `fleet_sections`: checked, under a version, with a line of audit, and planned anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from gpus_app.models import Host, HostSetting
from gpus_app.services import request_plan, save_section
from models_app.fleet_sections import FLEET_SECTIONS, cleaned
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.permissions import require


def save_fleet_section(
    *, host: Host, section: str, values: Mapping[str, Any], version: int, actor: Actor
) -> HostSetting:
    """Store a section if it is still at `version`. Raises Refused with a message per key, or EditConflict."""
    require(actor.user, FLEET_SECTIONS[section].level)
    wanted = cleaned(section, values)
    with transaction.atomic():
        row, changed = save_section(host, section, wanted, version, actor)
        if changed:
            request_plan(host=host, actor=actor)
    return row
