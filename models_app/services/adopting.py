"""The settings that a text was made from, brought back as ordinary changes (web.md 11.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from django.db import transaction

from gpus_app import selectors as gpu_selectors
from gpus_app import services as gpu_services
from gpus_app.models import Host, HostSetting
from models_app import convert
from models_app.core.export.revisions.causes import Inputs, Section, inputs_from_json
from models_app.fleet_sections import FLEET_SECTIONS
from models_app.models import Change, Revision, RevisionDetails, Row
from models_app.models import Variant as StoredVariant
from models_app.selectors.entry_sight import EntrySight
from models_app.selectors.sight import sees_all
from models_app.services.changes import undone
from models_app.services.editing import EDITABLE, pinned, save_override
from models_app.services.sections import save_fleet_section
from models_app.services.variants import EDITABLE_ON_VARIANT, add_variant, delete_variant, save_variant
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import NotAllowed, Refused
from quartermaster_site.figures import counted

SAVES: Mapping[str, Callable[..., HostSetting]] = {
    "memory": gpu_services.save_memory_settings,
    "gpu": gpu_services.save_device_settings,
    **{name: partial(save_fleet_section, section=name) for name in FLEET_SECTIONS},
}
"""Sections of a host's settings that can be brought back."""
BY_HAND = {convert.VARIANT_SECTION: "fleet variants", convert.ENCODER_SECTION: "pinned components"}


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was brought back, and in words what a person has to do."""

    sections: tuple[str, ...]
    models: int
    left: tuple[str, ...]


def adopt_settings(*, revision: Revision, actor: Actor) -> Adopted:
    """Settings and pins as they were when this text was planned; all of it or, where a part is refused, nothing."""
    require(actor.user, Level.EDIT, revision.host)
    details = RevisionDetails.objects.filter(revision=revision).first()
    inputs = inputs_from_json(details.inputs) if details and details.inputs else Inputs()
    if not inputs.is_known:
        raise Refused(f"What revision {revision.number} was made from was not kept.")
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=revision.host_id)
        _require_editable(host, inputs.last_change, actor)
        sections = tuple(name for name in SAVES if _restore_section(host, name, inputs, actor))
        left = [words for name, words in BY_HAND.items() if _differs(host, name, inputs)]
        models, unreached = _restore_pins(host, inputs.last_change, actor)
        result = Adopted(sections, models, (*left, *unreached))
        if sections or models:
            record(actor, "config.adopt-settings", subject=revision, host_slug=host.slug)
    return result


def _require_editable(host: Host, last_change: int, actor: Actor) -> None:
    """Raise NotAllowed where models would be set back that the person may not edit."""
    later = Change.objects.filter(host=host, pk__gt=last_change, rule=0).exclude(match="").order_by()
    sight = EntrySight(actor.user, host)
    held = sum(sight.path_level(path) < Level.EDIT for path in later.values_list("match", flat=True).distinct())
    if held:
        raise NotAllowed(f"This would set back {counted(held, 'model')} that you may not edit.")


def _differs(host: Host, name: str, inputs: Inputs) -> bool:
    return bool(gpu_selectors.section(host, name).values != inputs.sections.get(name, Section()).values)


def _restore_section(host: Host, name: str, inputs: Inputs, actor: Actor) -> bool:
    if not _differs(host, name, inputs):
        return False
    values, version = inputs.sections.get(name, Section()).values, gpu_selectors.section(host, name).version
    SAVES[name](host=host, values=values, version=version, actor=actor)
    return True


def _restore_pins(host: Host, last_change: int, actor: Actor) -> tuple[int, list[str]]:
    """The number of models that were set back, and what could not be."""
    later: dict[tuple[str, str], list[Change]] = {}
    for change in Change.objects.filter(host=host, pk__gt=last_change).exclude(match="").order_by("-pk"):
        later.setdefault((change.match, change.variant), []).append(change)
    rows = {row.path: row for row in Row.objects.filter(host=host, path__in=[match for match, _ in later])}
    touched, left = set(), []
    for (match, variant), changes in sorted(later.items()):
        row = rows.get(match)
        if row is None or changes[0].quant or any(change.action == "rename" for change in changes):
            named = f"{variant} of {match}" if variant else match
            left.append(named if sees_all(actor.user, host) or not changes[0].rule else "a rule")
        elif variant:
            _restore_variant(row, variant, changes, actor)
            touched.add(match)
        else:
            _restore_override(row, changes, actor)
            touched.add(match)
    return len(touched), left


def _restore_override(row: Row, changes: Iterable[Change], actor: Actor) -> None:
    current = pinned(row)
    state = undone(current.fields, changes)
    values = {key: state.get(key, field.absent) for key, field in EDITABLE.items()}
    save_override(row=row, values=values, version=current.version, actor=actor, action="restore")


def _restore_variant(row: Row, name: str, changes: list[Change], actor: Actor) -> None:
    """`changes` are those since, the newest first: one that begins with an addition is about a new variant."""
    held = StoredVariant.objects.filter(
        override__host=row.host, override__match=row.path, override__quant="", name__iexact=name
    ).first()
    if changes[-1].action == "add":
        if held is not None:
            delete_variant(row=row, variant=held, actor=actor)
        return
    state = undone(held.fields if held else {}, changes)
    values = {key: state.get(key, field.absent) for key, field in EDITABLE_ON_VARIANT.items()}
    if held is None:
        add_variant(row=row, name=name, values={key: state[key] for key in values if key in state}, actor=actor)
    else:
        save_variant(row=row, variant=held, values=values, version=held.version, actor=actor, action="restore")
