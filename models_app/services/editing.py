"""Saving what people pin for a model: checked, sparse, under a version, with a line of history and of audit.

A save starts from what applies now: the model's own override, else the pattern that covers it. It leaves no row, no
history and no plan behind when it changes nothing (web.md W-004).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from gpus_app.models import Host
from gpus_app.services import request_plan
from models_app import convert
from models_app.core.fields import OVERRIDE_FIELDS
from models_app.core.fields.groups import ARGUMENT_KEYS
from models_app.core.launch.backends import engine_of
from models_app.core.launch.ownership import custom_text
from models_app.core.plans.chosen import Planned, without_chosen
from models_app.core.settings import Override, Settings, override_from_mapping
from models_app.core.state.editor import editor_save
from models_app.core.state.values import field_problem
from models_app.models import Change, Row
from models_app.models import Override as StoredOverride
from models_app.pins import PinnedFields
from models_app.services.arguments import check_arguments, rules_of
from models_app.services.changes import add_change, of_variant, undone
from models_app.services.named_files import check_files
from models_app.services.planning import HostFacts, host_facts, preview_plan, stored_override
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.grants import grants_of
from quartermaster_site.access.permissions import Level, may, require, require_arguments
from quartermaster_site.access.rules import Scope
from quartermaster_site.errors import EditConflict, Refused, Withheld

EDITABLE = {field.key: field for field in OVERRIDE_FIELDS if field.key not in ("match", "quant", "variants")}
TAKEN = "This id is not free for this model: choose another one."


@dataclass(frozen=True, slots=True)
class Pinned:
    """What applies to a row: the model's own override or a pattern's, and the version that a form starts from."""

    override: Override
    own: StoredOverride | None
    pattern: str = ""

    @property
    def version(self) -> int:
        return self.own.version if self.own else 0

    @property
    def fields(self) -> dict[str, Any]:
        return convert.override_fields(self.override)


def pinned(row: Row, facts: HostFacts | None = None) -> Pinned:
    """What is pinned for a row now."""
    own = StoredOverride.objects.filter(host=row.host, match=row.path, quant="").select_related("changed_by").first()
    override = stored_override(facts or host_facts(row.host, row.path), row)
    return Pinned(override, own, "" if own else override.match)


def edited(row: Row, current: Override, values: Mapping[str, Any], is_moe: bool | None) -> Override:
    """The override after a form with these values: what a preview plans with, and a save stores before it is pruned."""
    after = editor_save(current, row.path, values, form_keys=values.keys(), is_moe=is_moe, rules=rules_of(row.host))
    return replace(after, quant="")


def save_override(
    *, row: Row, values: Mapping[str, Any], version: int, actor: Actor, action: str = "save"
) -> StoredOverride | None:
    """Store the values of a form by key; fields that it does not have stay. None where nothing is or was stored.

    Raises Refused with a message per field, EditConflict when somebody saved meanwhile.
    """
    require(actor.user, Level.EDIT, row)
    check_values(values)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=row.host_id)
        facts = host_facts(row.host, row.path)
        current = pinned(row, facts)
        known = current.version
        header = convert.header_lookup(row.host, [row.path])(row.path)
        planning = Planning(
            facts.settings,
            lambda override: preview_plan(row=row, override=override, facts=facts).plans,
            header.is_moe if header else None,
        )
        own = store_override(row, current, values, planning, version=version, actor=actor, action=action)
        if own is not None and own.version > known:
            request_plan(host=row.host, actor=actor)
    return own


@dataclass(frozen=True, slots=True)
class Planning:
    """What a save asks the planner about one row."""

    settings: Settings
    plans: Planned
    is_moe: bool | None


def store_override(
    row: Row,
    current: Pinned,
    values: Mapping[str, Any],
    planning: Planning,
    *,
    version: int,
    actor: Actor,
    action: str = "save",
) -> StoredOverride | None:
    """The part of a save that concerns one row: inside a transaction that holds its host, with checked values."""
    before = current.fields
    touched = changed_keys(before, values)
    if not touched:  # the same form sent twice, or somebody else saved the very same
        return current.own
    if version < 0 or (version != current.version and conflicts(before, state_at(row, before, version), values.keys())):
        check_version(current.own, version, before)
    check_files(actor.user, row.host, before, values)
    if "servedId" in touched:
        _check_id(row, str(values["servedId"] or ""), actor)
    if touched.intersection(ARGUMENT_KEYS):
        require_arguments(actor.user, row)
        after = edited(row, current.override, values, planning.is_moe)
        check_arguments(row.host, custom_text(after), engine_of(planning.settings, after, row.model_class))
    fields = _shortest(row, current, values, touched, planning)
    if fields == before:
        return current.own
    own = own_override(row, current)
    own.fields, own.version = fields, own.version + 1
    own.changed_by, own.changed_at = actor.user, timezone.now()
    own.save()
    note_change(row=row, actor=actor, action=action, before=before, after=fields, version=own.version)
    return own


def _check_id(row: Row, wanted: str, actor: Actor) -> None:
    """Raises Refused for an id that policies keep from the person, or under which a model is served that they may not
    edit: that model would get another one, and its clients this model.
    """
    wanted = wanted.strip()
    if not wanted or may(actor.user, Level.MANAGE):
        return
    grants = grants_of(actor.user)
    held = grants.on(Scope(row.host_id, (wanted,))) < Level.VIEW
    held = held or grants.on(Scope(row.host_id, (wanted, row.base_id), row.path)) < Level.EDIT
    if not held:
        same = Q(served_id__iexact=wanted) | Q(plans__profile_id__iexact=wanted)
        others = Row.objects.filter(same, host=row.host_id).exclude(pk=row.pk).distinct()
        held = any(not may(actor.user, Level.EDIT, other) for other in others)
    if held:
        raise Withheld("Some settings cannot be taken.", fields={"servedId": TAKEN})


def reset_override(*, row: Row, version: int, actor: Actor) -> StoredOverride | None:
    """Everything automatic again; a pattern that covers the model does not shine through. Variants stay."""
    values = {key: field.absent for key, field in EDITABLE.items()}
    return save_override(row=row, values=values, version=version, actor=actor, action="reset")


def restore_override(*, row: Row, change: Change, version: int, actor: Actor) -> StoredOverride | None:
    """Bring back the state after an earlier change, as a change of its own."""
    values = {key: change.after.get(key, field.absent) for key, field in EDITABLE.items()}
    return save_override(row=row, values=values, version=version, actor=actor, action="restore")


def _shortest(
    row: Row, current: Pinned, values: Mapping[str, Any], touched: Collection[str], planning: Planning
) -> dict[str, Any]:
    """The fields to store: of those that this save touches, none that the planner would choose anyway."""
    after = edited(row, current.override, values, planning.is_moe)
    return convert.override_fields(without_chosen(after, touched, planning.plans, planning.settings))


def own_override(row: Row, current: Pinned) -> StoredOverride:
    """The model's own row; a new one says what the pattern said that it shadows from now on, variants included."""
    if current.own:
        return current.own
    history = Change.objects.filter(host=row.host, match=row.path, rule=0, variant="")
    own = StoredOverride.objects.create(
        host=row.host,
        match=row.path,
        fields=current.fields,
        version=history.aggregate(last=Max("version"))["last"] or 0,
    )
    for variant in current.override.variants:
        own.variants.create(name=variant.name, fields=convert.variant_fields(variant), version=1)
    return own


def check_values(values: Mapping[str, Any]) -> None:
    """Raises Refused where a key is not one of an override's, or a value is not acceptable."""
    unknown = sorted(set(values) - set(EDITABLE))
    if unknown:
        raise Refused(f"There is no setting {unknown[0]}.")
    problems = {key: problem for key, value in values.items() if (problem := field_problem(EDITABLE[key], value))}
    if problems:
        raise Refused("Some settings cannot be taken.", fields=problems)
    override_from_mapping(values)


def changed_keys(before: Mapping[str, Any], values: Mapping[str, Any]) -> set[str]:
    """Keys of a form whose value differs from what is stored."""
    return {key for key, value in values.items() if _stored(key, value) != _stored(key, before.get(key))}


def _stored(key: str, value: Any) -> Any:
    """A value as it is stored, None where it says nothing."""
    if not EDITABLE[key].is_set(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def note_change(
    *,
    row: Row,
    actor: Actor,
    action: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    version: int,
    variant: str = "",
) -> None:
    """One line of history and one of audit. The audit masks what looks like a secret; history is what restores."""
    changes = add_change(
        host=row.host,
        match=row.path,
        variant=variant,
        action=action,
        before=before,
        after=after,
        version=version,
        actor=actor,
    )
    kind = "variant" if variant else "override"
    label = f"{row.served_id} {variant}".strip()
    record(actor, f"{kind}.{action}", subject=row, label=label, host_slug=row.host.slug, changes=changes)


def state_at(row: Row, now: Mapping[str, Any], version: int, variant: str = "") -> dict[str, Any]:
    """The fields as they were at a version: `now` with every later change taken back."""
    held = Change.objects.filter(host=row.host, match=row.path, quant="", rule=0).order_by("-id")
    own = of_variant(held.exclude(variant=""), variant) if variant else held.filter(variant="").iterator()
    return undone(now, takewhile(lambda change: change.version > max(0, version), own))


def conflicts(now: Mapping[str, Any], original: Mapping[str, Any], keys: Collection[str]) -> bool:
    """Whether somebody changed one of these fields since: other forms of the same model do not stand in the way."""
    return any(now.get(key) != original.get(key) for key in keys)


def check_version(held: PinnedFields | None, version: int, saved: Mapping[str, Any]) -> None:
    """Raises EditConflict where a form started from another version than the one that is stored."""
    now = held.version if held else 0
    if now == version:
        return
    who = str((held.changed_by if held else None) or "Somebody")
    raise EditConflict(
        f"{who} saved this meanwhile.",
        saved=dict(saved),
        version=now,
        by=who,
        at=held.changed_at if held else timezone.now(),
    )
