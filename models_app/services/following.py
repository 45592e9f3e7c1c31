"""Giving up a model's own settings, so that the rule that matches it applies again."""

from __future__ import annotations

from django.db import transaction

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app.core.fields.groups import ARGUMENT_KEYS
from models_app.models import Row
from models_app.services.editing import check_version, note_change, pinned
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.permissions import Level, require, require_arguments


def follow_rule(*, row: Row, version: int, actor: Actor) -> None:
    """Delete the model's own override with its variants; the history keeps both. Raises EditConflict."""
    require(actor.user, Level.EDIT, row)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=row.host_id)
        own = pinned(row).own
        if own is None:
            return
        check_version(own, version, own.fields)
        variants = list(own.variants.all())
        if any(set(ARGUMENT_KEYS) & set(held.fields) for held in (own, *variants)):
            require_arguments(actor.user, row)
        for held in variants:
            note_change(
                row=row,
                actor=actor,
                action="delete",
                before=held.fields,
                after={},
                version=held.version + 1,
                variant=held.name,
            )
        note_change(row=row, actor=actor, action="follow", before=own.fields, after={}, version=own.version + 1)
        own.delete()
        request_plan(host=row.host, actor=actor)
