"""Variants that all chat models of a host share (web.md 5.6). They are one section of the host's settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from gpus_app.models import Host, HostSetting
from gpus_app.services import request_plan
from models_app import convert
from models_app.core.discovery.enhancers import enhancer_name
from models_app.core.discovery.names import slugify
from models_app.core.fields.groups import ARGUMENT_KEYS
from models_app.core.launch.ownership import clear_owned_by_text, text_of
from models_app.core.settings import Override, variant_from_mapping
from models_app.models import Change, Row
from models_app.selectors.sight import seen_rows
from models_app.services.arguments import check_arguments, rules_of
from models_app.services.changes import add_change, changes_of, undone
from models_app.services.impact import SECONDS, planned_twice
from models_app.services.named_files import check_files
from models_app.services.planning import host_facts, stored_override
from models_app.services.variants import EDITABLE_ON_VARIANT, MOST_VARIANTS, check_variant_values, name_problem
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require, require_arguments
from quartermaster_site.errors import EditConflict, NotFound, Refused

KEY = "defaultVariants"
_WORST = ("over", "unknown", "spills", "fits")
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reach:
    """Which models a fleet variant concerns: those that get it, and those with one of their own of that name."""

    models: int
    overridden: int


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change would do: entries new or changed, of how many planned; the worst verdict and whose it is."""

    changed: int
    planned: int
    left_out: int
    worst: str
    worst_id: str = ""


def fleet_section(host: Host) -> HostSetting:
    """The stored section; an unsaved one of version 0 where nobody saved it yet."""
    row = HostSetting.objects.filter(host=host, section=convert.VARIANT_SECTION).select_related("changed_by").first()
    return row or HostSetting(host=host, section=convert.VARIANT_SECTION)


def fleet_fields(section: HostSetting, name: str) -> Fields:
    """The set fields of one fleet variant; NotFound."""
    found = _of(_listed(section), name)
    if not found:
        raise NotFound("There is no such shared variant.")
    return _unnamed(found)


def add_fleet_variant(*, host: Host, name: str, actor: Actor, values: Mapping[str, Any] | None = None) -> None:
    """A new one; without values it is a second entry of every chat model, which launches in the same way."""
    check_variant_values(values or {})
    fields = stored_fields(host, values or {})

    def added(items: list[Fields]) -> list[Fields]:
        problem = name_problem(name, [item["name"] for item in items])
        if not problem and len(items) >= MOST_VARIANTS:
            problem = f"Name: a host may have {MOST_VARIANTS} shared variants."
        if problem:
            raise Refused(problem, fields={"name": problem})
        return [*items, {"name": name, **fields}]

    _change(host, actor, "add", name, added)


def save_fleet_variant(*, host: Host, name: str, values: Mapping[str, Any], version: int, actor: Actor) -> bool:
    """Store the values of a form; whether anything changed. Raises Refused, or EditConflict where somebody changed this
    variant since `version`.
    """
    return _save(host, name, values, version, actor, "save")


def _save(host: Host, name: str, values: Mapping[str, Any], version: int, actor: Actor, action: str) -> bool:
    check_variant_values(values)
    fields = stored_fields(host, values)

    def saved(items: list[Fields]) -> list[Fields]:
        return [{"name": item["name"], **fields} if item["name"].lower() == name.lower() else item for item in items]

    return _change(host, actor, action, name, saved, version)


def restore_fleet_variant(*, host: Host, change: Change, version: int, actor: Actor) -> None:
    """Bring back the state after an earlier change, the variant itself included where it was deleted."""
    fields = {key: value for key, value in change.after.items() if key in EDITABLE_ON_VARIANT}
    if any(item["name"].lower() == change.variant.lower() for item in _listed(fleet_section(host))):
        _save(host, change.variant, fields, version, actor, "restore")
    else:
        add_fleet_variant(host=host, name=change.variant, actor=actor, values=fields)


def fleet_fields_at(host: Host, name: str, saved: Mapping[str, Any], version: int) -> Fields:
    """The fields of a shared variant at a version of the section: `saved` with every later change taken back."""
    later = Change.objects.filter(host=host, match="", rule=0, variant__iexact=name, version__gt=max(0, version))
    return undone(saved, later.order_by("-id"))


def delete_fleet_variant(*, host: Host, name: str, actor: Actor, version: int | None = None) -> None:
    """Its entries go with the next plan; models' own variants of that name stay. Raises EditConflict where somebody
    changed this variant since `version`.
    """

    def without(items: list[Fields]) -> list[Fields]:
        return [item for item in items if item["name"].lower() != name.lower()]

    _change(host, actor, "delete", name, without, version)


def stored_fields(host: Host, values: Mapping[str, Any]) -> Fields:
    """What is kept of a form: set fields only, none that the variant's own text owns."""
    override = clear_owned_by_text(Override(variants=(variant_from_mapping(values),)), rules_of(host))
    return convert.variant_fields(override.variants[0])


def fleet_reach(host: Host, user: Any) -> Callable[[str], Reach]:
    """How many models a shared variant concerns, of those that a person sees. Enhancers and other classes get none."""
    facts = host_facts(host)
    overrides = [stored_override(facts, row) for row in _receivers(host, user)]

    def reach(name: str) -> Reach:
        own = sum(any(item.name.lower() == name.lower() for item in override.variants) for override in overrides)
        return Reach(len(overrides) - own, own)

    return reach


def fleet_impact(host: Host, name: str, values: Mapping[str, Any], user: Any) -> Impact:
    """What saving these values would change of the models that a person sees, planned model by model for some seconds
    at most; nothing is stored.
    """
    facts = host_facts(host)
    variant = replace(variant_from_mapping(stored_fields(host, values)), name=name)
    others = [item for item in facts.settings.default_variants if item.name.lower() != name.lower()]
    after = replace(facts, settings=replace(facts.settings, default_variants=(*others, variant)))
    rows, until = _receivers(host, user), time.monotonic() + SECONDS
    changed = planned = 0
    verdicts: dict[str, str] = {}
    for row, *plans in planned_twice(rows, facts, after):
        wanted = f"{row.served_id}-{slugify(name)}"
        old, new = (next((plan for plan in found if plan.profile_id == wanted), None) for found in plans)
        planned += 1
        changed += (old.argv if old else None) != (new.argv if new else None)
        if new:
            verdicts.setdefault(new.verdict, new.profile_id)
        if time.monotonic() > until:
            break
    worst = next((verdict for verdict in _WORST if verdict in verdicts), "")
    return Impact(changed, planned, len(rows) - planned, worst, verdicts.get(worst, ""))


def _receivers(host: Host, user: Any) -> list[Row]:
    present = seen_rows(user).filter(host=host, model_class="llm").exclude(state=Row.State.MISSING)
    return [row for row in present.select_related("host") if enhancer_name(row.served_id) is None]


def _listed(section: HostSetting) -> list[Fields]:
    return list(section.values.get(KEY, []))


def _change(
    host: Host,
    actor: Actor,
    action: str,
    name: str,
    change: Callable[[list[Fields]], list[Fields]],
    version: int | None = None,
) -> bool:
    require(actor.user, Level.EDIT, host)
    with transaction.atomic():
        Host.objects.select_for_update().get(pk=host.pk)
        held = fleet_section(host)
        before = _listed(held)
        after = change(before)
        if after == before:
            return False
        if version is not None and version != held.version:
            _check_version(held, name, version)
        old, new = _of(before, name), _of(after, name)
        differing = changes_of(old, new)
        check_files(actor.user, host, old, new)
        if differing.keys() & set(ARGUMENT_KEYS):
            require_arguments(actor.user, host)
            check_arguments(host, text_of(variant_from_mapping(new)))
        held.values, held.version = {KEY: after}, held.version + 1
        held.changed_by, held.changed_at = actor.user, timezone.now()
        held.save()
        add_change(
            host=host,
            actor=actor,
            action=action,
            before=_unnamed(old),
            after=_unnamed(new),
            version=held.version,
            variant=(new or old)["name"],
        )
        label = f"{host.name}: {name}"
        record(actor, f"fleet-variant.{action}", subject=held, label=label, host_slug=host.slug, changes=differing)
        request_plan(host=host, actor=actor)
    return True


def _of(items: list[Fields], name: str) -> Fields:
    return next((item for item in items if item["name"].lower() == name.lower()), {})


def _unnamed(item: Fields) -> Fields:
    return {key: value for key, value in item.items() if key != "name"}


def _check_version(held: HostSetting, name: str, version: int) -> None:
    """Raises EditConflict where this variant is another one than at that version of the section."""
    saved = fleet_fields(held, name)
    if version < 0 or saved != fleet_fields_at(held.host, name, saved, version):
        raise _conflict(held, saved)


def _conflict(held: HostSetting, saved: Fields) -> EditConflict:
    who = str(held.changed_by or "Somebody")
    return EditConflict(
        f"{who} saved the shared variants meanwhile.",
        saved=saved,
        version=held.version,
        by=who,
        at=held.changed_at,
    )
