"""Pins of component files for all image and video models of a host (discovery.md 11.7)."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host, HostSetting
from gpus_app.services import request_plan
from models_app.convert import ENCODER_SECTION
from models_app.models import Component
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict


def set_component_pin(*, component: Component, key: str, pinned: bool, version: int, actor: Actor) -> HostSetting:
    """Pin this file under a key of `settings.encoders`, or lift the pin. What is so already changes nothing.

    Raises EditConflict when somebody saved the host's pins since `version`.
    """
    require(actor.user, Level.EDIT, component.host)
    host = component.host
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        row = HostSetting.objects.filter(host=host, section=ENCODER_SECTION).first()
        row = row or HostSetting(host=host, section=ENCODER_SECTION)
        wanted = {name: path for name, path in row.values.items() if name != key}
        if pinned:
            wanted[key] = component.path
        if wanted == row.values:
            return row
        if row.version != version:
            who = str(row.changed_by or "somebody")
            saved = dict(row.values)
            raise EditConflict(
                f"{who} changed the pins meanwhile.", saved=saved, version=row.version, by=who, at=row.changed_at
            )
        changes = {key: [row.values.get(key), wanted.get(key)]}
        row.values, row.version = wanted, version + 1
        row.changed_by, row.changed_at = actor.user, timezone.now()
        row.save()
        record(actor, "settings.encoders", subject=row, label=host.name, host_slug=host.slug, changes=changes)
        request_plan(host=host, actor=actor)
    return row
