"""Taking an import back, as long as none of its rows was changed since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.selectors import section
from models_app.core.export.fragments import form_of
from models_app.core.imports.report import Kind
from models_app.models import Fragment, ImportBatch, Row, Variant
from models_app.models import Override as StoredOverride
from models_app.services.editing import EDITABLE, save_override
from models_app.services.fragments import save_fragment
from models_app.services.import_kinds import TAKERS
from models_app.services.import_sight import ImportSight, target_of
from models_app.services.sections import SECTION_SAVES
from models_app.services.variants import EDITABLE_ON_VARIANT, delete_variant, save_variant
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import NotAllowed, Refused
from quartermaster_site.figures import counted

Record = Mapping[str, Any]
MOST_NAMED = 5


def changed_since(batch: ImportBatch) -> list[str]:
    """What of an applied batch somebody has changed meanwhile, in words; nothing where it can be taken back."""
    return [_name(item) for item in batch.applied if _version(batch, item) != item["version"]]


def undo_import(*, batch: ImportBatch, actor: Actor) -> ImportBatch:
    """Everything as it was before the batch. Raises Refused where a row was changed since: then nothing is undone."""
    require(actor.user, Level.EDIT, batch.host)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=batch.host_id)
        held = ImportBatch.objects.select_for_update().select_related("host").get(pk=batch.pk)
        if held.state != ImportBatch.State.APPLIED:
            raise Refused("Only an import that was applied can be undone.")
        if unable := ImportSight(actor.user, held).held:
            raise NotAllowed(f"This import set {counted(unable, 'row')} that you may not edit.")
        if names := changed_since(held):
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            raise Refused(
                f"Changed since: {', '.join(names[:MOST_NAMED])}{more}. Nothing was undone; take these back by hand."
            )
        for item in reversed(held.applied):
            _UNDO[item["kind"]](held, item, actor)
        held.state, held.undone_at = ImportBatch.State.UNDONE, timezone.now()
        held.save(update_fields=["state", "undone_at"])
        record(actor, "import.undo", subject=held, label=held.name, host_slug=held.host.slug)
    return held


def _name(item: Record) -> str:
    return " ".join(filter(None, [str(item["subject"]) or "the top of the file", str(item["variant"])]))


def _version(batch: ImportBatch, item: Record) -> int | None:
    """The version that a row has now, None where it is gone."""
    found: int | None = None
    match item["kind"]:
        case Kind.OVERRIDE:
            held = StoredOverride.objects.filter(host=batch.host_id, match=item["subject"], quant="")
            found = held.values_list("version", flat=True).first()
        case Kind.VARIANT:
            found = _variants(batch, item).values_list("version", flat=True).first()
        case Kind.FRAGMENT:
            fragments = Fragment.objects.filter(
                host=batch.host_id, form=form_of(batch.dialect), served_id=item["subject"]
            )
            found = fragments.values_list("version", flat=True).first()
        case Kind.SETTING:
            found = section(Host.objects.get(pk=batch.host_id), item["subject"]).version
        case kind if kind in TAKERS:
            found = TAKERS[kind].version(batch.host, target_of(item))
    return found


def _variants(batch: ImportBatch, item: Record) -> Any:
    return Variant.objects.filter(
        override__host=batch.host_id,
        override__match=item["subject"],
        override__quant="",
        name__iexact=item["variant"],
    )


def _row(batch: ImportBatch, item: Record) -> Row:
    row = Row.objects.filter(host=batch.host_id, path=item["subject"]).select_related("host").first()
    if row is None:
        raise Refused(f"{item['subject']} is no model of this host any more.")
    return row


def _undo_override(batch: ImportBatch, item: Record, actor: Actor) -> None:
    row, before = _row(batch, item), item["before"] or {}
    values = {key: before.get(key, field.absent) for key, field in EDITABLE.items()}
    own = save_override(row=row, values=values, version=item["version"], actor=actor, action="undo")
    if item["before"] is None and own is not None and not own.variants.exists():
        own.delete()  # there was no row, so that a pattern covers the model again


def _undo_variant(batch: ImportBatch, item: Record, actor: Actor) -> None:
    row, held = _row(batch, item), _variants(batch, item).select_related("override", "changed_by").get()
    if item["before"] is None:
        delete_variant(row=row, variant=held, actor=actor)
        return
    values = {key: item["before"].get(key, field.absent) for key, field in EDITABLE_ON_VARIANT.items()}
    save_variant(row=row, variant=held, values=values, version=held.version, actor=actor, action="undo")


def _undo_fragment(batch: ImportBatch, item: Record, actor: Actor) -> None:
    save_fragment(
        host=batch.host,
        form=form_of(batch.dialect),
        served_id=item["subject"],
        fields=item["before"] or {},
        version=item["version"],
        actor=actor,
        action="undo",
    )


def _undo_setting(batch: ImportBatch, item: Record, actor: Actor) -> None:
    save = SECTION_SAVES[item["subject"]]
    save(host=batch.host, values=item["before"], version=item["version"], actor=actor)


def _undo_whole(batch: ImportBatch, item: Record, actor: Actor) -> None:
    TAKERS[item["kind"]].undo(batch.host, target_of(item), item["before"], actor)


_UNDO: Mapping[str, Callable[[ImportBatch, Record, Actor], None]] = {
    Kind.OVERRIDE: _undo_override,
    Kind.VARIANT: _undo_variant,
    Kind.FRAGMENT: _undo_fragment,
    Kind.SETTING: _undo_setting,
    **dict.fromkeys(TAKERS, _undo_whole),
}
