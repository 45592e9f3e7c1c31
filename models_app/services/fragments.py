"""Raw keys of a router's file that people keep by hand: administrators only, each with its author (web.md 12.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app.core.export import load
from models_app.core.export.fragments import YAML, Fragments, form_of
from models_app.models import Fragment
from models_app.services.changes import changes_of
from models_app.services.editing import check_version
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import Refused

MOST_FRAGMENTS = 5000
KEY_BLOCKS = frozenset({"apiKeys", "apiKeyModels"})


def fragment_rows(host: Host, form: str = "") -> QuerySet[Fragment]:
    """The fragments of a host, those of one form where it is named."""
    found = Fragment.objects.filter(host=host).select_related("changed_by")
    return found.filter(form=form) if form else found


def fragments_of(host: Host, dialect: str) -> Fragments:
    """What is merged into a file of a dialect."""
    rows = {row.served_id: row.fields for row in fragment_rows(host, form_of(dialect))}
    return Fragments(rows.pop("", {}), rows)


def raw_keys(host: Host) -> list[Fragment]:
    """Fragments that add keys to what planning writes: at the top of the file, or in one of its entries."""
    return [row for row in fragment_rows(host, YAML) if not row.fields.get("cmd")]


def save_raw_keys(*, host: Host, served_id: str, block: str, version: int, actor: Actor) -> Fragment | None:
    """Store keys from their YAML; a blank text removes them. Raises Refused with a message per field."""
    try:
        tree = load.load(block)
        load.require_finite(tree)
    except load.LoadError as error:
        raise Refused("This is no YAML.", fields={"block": f"This is no YAML: {error}"}) from error
    value = tree.value
    if value is not None and not isinstance(value, dict):
        raise Refused("These are no keys.", fields={"block": "Write keys and values, such as logLevel: info."})
    keys: dict[str, Any] = value or {}
    if served_id and "cmd" in keys:
        raise Refused("A command is an entry.", fields={"block": "A whole entry with its command is an entry by hand."})
    if not served_id and (held := sorted(keys.keys() & KEY_BLOCKS)):
        raise Refused("Keys have a page.", fields={"block": f"{held[0]}: make them under API keys, which seals them."})
    return save_fragment(host=host, form=YAML, served_id=served_id, fields=keys, version=version, actor=actor)


def fragment_inputs(host: Host) -> list[list[Any]]:
    """What a text depends on."""
    return [[row.form, row.served_id, row.fields] for row in fragment_rows(host)]


def save_fragment(
    *,
    host: Host,
    form: str,
    served_id: str,
    fields: Mapping[str, Any],
    version: int,
    actor: Actor,
    action: str = "save",
) -> Fragment | None:
    """Store the keys of the top, or of one entry; without any the fragment goes. None where there is none after it.

    Raises Refused, or EditConflict where somebody saved meanwhile.
    """
    require(actor.user, Level.MANAGE)
    if "models" in fields and not served_id:
        raise Refused("Models are fragments of their own: leave models out of the top of the file.")
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        held = Fragment.objects.filter(host=host, form=form, served_id=served_id).select_related("changed_by").first()
        before = dict(held.fields) if held else {}
        if dict(fields) == before:
            return held
        check_version(held, version, before)
        if held is None:
            if Fragment.objects.filter(host=host).count() >= MOST_FRAGMENTS:
                raise Refused(f"A host may have {MOST_FRAGMENTS:,} raw fragments.")
            held = Fragment(host=host, form=form, served_id=served_id)
        _store(held, dict(fields), actor)
        record(
            actor,
            f"fragment.{action}",
            subject=held,
            label=f"{host.name}: {held}",
            host_slug=host.slug,
            changes=changes_of(before, fields),
        )
        if not fields:
            held.delete()
        request_plan(host=host, actor=actor)
    return held if fields else None


def _store(held: Fragment, fields: dict[str, Any], actor: Actor) -> None:
    held.fields, held.version = fields, held.version + 1
    held.changed_by, held.changed_at = actor.user, timezone.now()
    held.save()
