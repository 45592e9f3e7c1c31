"""Variants of a model: named sets of fields that inherit from it, each a profile of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app import convert
from models_app.core.discovery.names import slugify
from models_app.core.fields import VARIANT_FIELDS
from models_app.core.fields.groups import ARGUMENT_KEYS
from models_app.core.launch.ownership import clear_owned_by_text, text_of
from models_app.core.settings import Override, variant_from_mapping
from models_app.core.state.editor import put_variant
from models_app.core.state.values import field_problem
from models_app.core.state.variants import VISION, merge_variant
from models_app.models import Change, Row
from models_app.models import Variant as StoredVariant
from models_app.selectors.sight import Profile
from models_app.services.arguments import check_arguments, rules_of
from models_app.services.changes import name_after
from models_app.services.editing import (
    Pinned,
    check_version,
    conflicts,
    note_change,
    own_override,
    pinned,
    state_at,
)
from models_app.services.named_files import check_files
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.permissions import Level, require, require_arguments
from quartermaster_site.errors import NotFound, Refused

EDITABLE_ON_VARIANT = {field.key: field for field in VARIANT_FIELDS if field.key != "name"}
MOST_VARIANTS = 50
NO_VARIANT = "There is no such variant."
_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")


def get_variant(row: Row, pk: int) -> StoredVariant:
    """A variant of the row's own override; NotFound."""
    held = StoredVariant.objects.filter(override__host=row.host, override__match=row.path, override__quant="", pk=pk)
    found = held.select_related("override", "changed_by").first()
    if found is None:
        raise NotFound(NO_VARIANT)
    return found


def profile_of(row: Row, name: str) -> Profile:
    """The entry that a variant makes: policies may speak about it by its id."""
    return Profile(row, f"{row.served_id}-{slugify(name)}")


def edited_variant(row: Row, current: Override, name: str, values: Mapping[str, Any]) -> Override:
    """The override with this variant added, or in the place of the one of that name: for previews and saves alike."""
    variant = replace(variant_from_mapping(values), name=name)
    with_text = clear_owned_by_text(Override(variants=(variant,)), rules_of(row.host))
    return put_variant(current, with_text.variants[0])


def add_variant(*, row: Row, name: str, actor: Actor, values: Mapping[str, Any] | None = None) -> StoredVariant:
    """A new variant; without values it is a second entry of the model that launches in the same way."""
    require(actor.user, Level.EDIT, row)
    require(actor.user, Level.EDIT, profile_of(row, name))
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=row.host_id)
        current = pinned(row)
        _check_name(row, current, name)
        fields = _fields(row, current, name, values or {}, (values or {}).keys())
        if fields.keys() & set(ARGUMENT_KEYS):
            require_arguments(actor.user, row)
            check_arguments(row.host, text_of(variant_from_mapping(fields)))
        check_files(actor.user, row.host, {}, fields)
        own = own_override(row, current)
        if own.variants.count() >= MOST_VARIANTS:
            raise Refused(f"A model may have {MOST_VARIANTS} variants.", fields={"name": "There are too many."})
        history = Change.objects.filter(host=row.host, match=row.path, rule=0, variant__iexact=name).order_by(
            "-version"
        )
        version = (history.values_list("version", flat=True).first() or 0) + 1
        variant = own.variants.create(
            name=name, fields=fields, version=version, changed_by=actor.user, changed_at=timezone.now()
        )
        note_change(row=row, actor=actor, action="add", before={}, after=fields, version=version, variant=name)
        request_plan(host=row.host, actor=actor)
    return variant


def save_variant(
    *, row: Row, variant: StoredVariant, values: Mapping[str, Any], version: int, actor: Actor, action: str = "save"
) -> StoredVariant:
    """Store the values of a form by key. Raises Refused, or EditConflict when somebody saved meanwhile."""
    require(actor.user, Level.EDIT, profile_of(row, variant.name))
    check_variant_values(values)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=row.host_id)
        held = get_variant(row, variant.pk)
        before = dict(held.fields)
        touched = {key for key, value in values.items() if _stored(key, value) != before.get(key)}
        if not touched:
            return held
        if version < 0 or conflicts(before, state_at(row, before, version, held.name), values.keys()):
            check_version(held, version, before)
        check_files(actor.user, row.host, before, values)
        if touched.intersection(ARGUMENT_KEYS):
            require_arguments(actor.user, row)
            check_arguments(row.host, text_of(variant_from_mapping({**before, **values})))
        fields = _fields(row, pinned(row), held.name, {**before, **values}, touched)
        if fields == before:
            return held
        held.fields, held.version = fields, held.version + 1
        held.changed_by, held.changed_at = actor.user, timezone.now()
        held.save()
        note_change(
            row=row, actor=actor, action=action, before=before, after=fields, version=held.version, variant=held.name
        )
        request_plan(host=row.host, actor=actor)
    return held


def restore_variant(*, row: Row, change: Change, version: int, actor: Actor) -> StoredVariant:
    """Bring back the state after an earlier change, the variant itself included where it was deleted."""
    later = Change.objects.filter(host=row.host, match=row.path, quant="", rule=0, id__gt=change.pk).order_by("id")
    name = name_after(change, later.exclude(variant=""))
    held = StoredVariant.objects.filter(
        override__host=row.host, override__match=row.path, override__quant="", name__iexact=name
    ).first()
    after = {key: value for key, value in change.after.items() if key in EDITABLE_ON_VARIANT}
    if held is None:
        return add_variant(row=row, name=name, values=after, actor=actor)
    values = {key: after.get(key, field.absent) for key, field in EDITABLE_ON_VARIANT.items()}
    return save_variant(row=row, variant=held, values=values, version=version, actor=actor, action="restore")


def rename_variant(*, row: Row, variant: StoredVariant, name: str, actor: Actor) -> StoredVariant:
    """Give a variant another name, and with it another id that clients use."""
    require(actor.user, Level.EDIT, profile_of(row, variant.name))
    require(actor.user, Level.EDIT, profile_of(row, name))
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=row.host_id)
        held = get_variant(row, variant.pk)
        if held.name == name:
            return held
        _check_name(row, pinned(row), name, but=held.name)
        fields = dict(held.fields)
        before, after = {**fields, "name": held.name}, {**fields, "name": name}
        held.name, held.version = name, held.version + 1
        held.changed_by, held.changed_at = actor.user, timezone.now()
        held.save()
        note_change(
            row=row, actor=actor, action="rename", before=before, after=after, version=held.version, variant=name
        )
        request_plan(host=row.host, actor=actor)
    return held


def delete_variant(*, row: Row, variant: StoredVariant, actor: Actor, version: int | None = None) -> None:
    """Its profile goes with the next plan; its history stays. Raises EditConflict where `version` is an older one."""
    require(actor.user, Level.EDIT, profile_of(row, variant.name))
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=row.host_id)
        held = get_variant(row, variant.pk)
        if version is not None:
            check_version(held, version, held.fields)
        note_change(
            row=row,
            actor=actor,
            action="delete",
            before=held.fields,
            after={},
            version=held.version + 1,
            variant=held.name,
        )
        held.delete()
        request_plan(host=row.host, actor=actor)


def _fields(
    row: Row, current: Pinned, name: str, values: Mapping[str, Any], touched: Collection[str]
) -> dict[str, Any]:
    """What to store: of the fields that this save touches, none that equals what the variant would inherit."""
    override = edited_variant(row, current.override, name, values)
    variant = next(item for item in override.variants if item.name == name)
    for key in touched:
        field = EDITABLE_ON_VARIANT[key]
        absent: dict[str, Any] = {field.attribute: field.absent}
        shorter = replace(variant, **absent)
        if merge_variant(override, shorter) == merge_variant(override, variant) and not _tunes_the_twin(name):
            variant = shorter
    return convert.variant_fields(variant)


def _tunes_the_twin(name: str) -> bool:
    """The vision twin does not inherit by the rules of the other variants."""
    return name.lower() == VISION


def _check_name(row: Row, current: Pinned, name: str, but: str = "") -> None:
    problem = name_problem(name, {variant.name for variant in current.override.variants} - {but})
    has_projector = bool(convert.core_row(row).mmproj_path or current.override.mmproj_file)
    if not problem and _tunes_the_twin(name) and not has_projector:
        problem = "Name: vision tunes the entry that loads a projector; this model has none. Choose another name."
    if problem:
        raise Refused(problem, fields={"name": problem})


def name_problem(name: str, others: Collection[str]) -> str:
    """Why a name cannot be one more beside these, "" when it can."""
    if not _NAME.fullmatch(name) or not slugify(name):
        return "Name: 1 to 40 letters, digits, dots, dashes or underscores, such as long-context."
    if slugify(name) in {slugify(other) for other in others}:
        return f"Name: there is a variant {name} already; choose another name."
    return ""


def check_variant_values(values: Mapping[str, Any]) -> None:
    """Raises Refused where a key is not one of a variant's, or a value is not acceptable."""
    unknown = sorted(set(values) - set(EDITABLE_ON_VARIANT))
    if unknown:
        raise Refused(f"A variant has no setting {unknown[0]}.")
    problems = {
        key: problem for key, value in values.items() if (problem := field_problem(EDITABLE_ON_VARIANT[key], value))
    }
    if problems:
        raise Refused("Some settings cannot be taken.", fields=problems)


def _stored(key: str, value: Any) -> Any:
    return value if EDITABLE_ON_VARIANT[key].is_set(value) else None
