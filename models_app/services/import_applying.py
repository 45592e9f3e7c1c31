"""Taking over what a person ticked of an import: through the services behind the forms, all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from gpus_app.models import Backend, Host, HostSetting
from gpus_app.selectors import section
from models_app.core.export.fragments import form_of
from models_app.core.imports.allotting import EXACT, RAW, SAME, SETTINGS
from models_app.core.imports.mapping import MODELS
from models_app.core.imports.report import Item, Kind, Needs, Status, Target, item_from_json, item_to_json
from models_app.models import Fragment, ImportBatch, Row, Variant
from models_app.services.editing import pinned, save_override
from models_app.services.fragments import save_fragment
from models_app.services.import_current import Stored
from models_app.services.import_kinds import TAKERS
from models_app.services.import_sight import ImportSight
from models_app.services.importing import batch_of
from models_app.services.planning import host_facts
from models_app.services.sections import SECTION_SAVES
from models_app.services.variants import add_variant, save_variant
from quartermaster_site.access.audit import Actor, record
from quartermaster_site.access.permissions import Level, require
from quartermaster_site.errors import EditConflict, QuartermasterError, Refused
from quartermaster_site.jobs.control import ControlReporter
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.services import start_job

LEVELS = {Needs.EDIT: Level.EDIT, Needs.ARGUMENTS: Level.MANAGE, Needs.MANAGE: Level.MANAGE}
MASKED = "…"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person ticked. `ways`: group -> how it is taken over; `items`: numbers of single items."""

    sections: frozenset[str] = frozenset()
    ways: Mapping[str, str] = field(default_factory=dict)
    items: frozenset[int] = frozenset()

    def as_json(self) -> dict[str, Any]:
        return {"sections": sorted(self.sections), "ways": dict(self.ways), "items": sorted(self.items)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Choice:
        return cls(frozenset(data["sections"]), dict(data["ways"]), frozenset(data["items"]))


def items_of_batch(batch: ImportBatch) -> list[Item]:
    return [item_from_json(data) for data in batch.report.get("items", [])]


def chosen(batch: ImportBatch, choice: Choice, user: Any) -> list[Item]:
    """The items to take over, of those that a person may. Of an entry its new ones; what is set here already only where
    its own box is ticked.
    """
    kept, sight = [], ImportSight(user, batch)
    entries = batch.report.get("models", {})
    for number, item in enumerate(items_of_batch(batch)):
        if item.target.kind == Kind.NOWHERE or item.status in (Status.SAME, Status.LOST):
            continue
        if item.section not in choice.sections or LEVELS[item.needs] > sight.level_for(item):
            continue
        in_group = item.section == MODELS and item.group in entries
        if in_group and choice.ways.get(item.group) not in _ways(item):
            continue
        if number in choice.items or (in_group and item.status == Status.NEW):
            kept.append(item)
    return kept


def _ways(item: Item) -> tuple[str, ...]:
    return (item.choice,) if item.choice else (EXACT, SETTINGS, RAW, SAME)


def start_apply(*, batch: ImportBatch, choice: Choice, actor: Actor) -> Job:
    """Have what is ticked taken over. Raises Refused where nothing is, or the batch is not to be applied."""
    require(actor.user, Level.EDIT, batch.host)
    with transaction.atomic():
        held = ImportBatch.objects.select_for_update().get(pk=batch.pk)
        if held.state != ImportBatch.State.READ:
            raise Refused("This import has been applied, or cannot be.")
        if not chosen(held, choice, actor.user):
            raise Refused("Nothing is ticked that would change something.")
        subject = ("import", str(held.pk), held.name)
        started = start_job(kind="import_apply", host=held.host, inputs=choice.as_json(), subject=subject, actor=actor)
        held.state, held.job, held.problem = ImportBatch.State.APPLYING, started.job, ""
        held.save(update_fields=["state", "job", "problem"])
    return started.job


def apply_batch(*, job: Job, report: ControlReporter) -> dict[str, Any]:
    """The work of the job. What is refused anywhere takes back all of it; the batch can be applied again then."""
    batch = batch_of(job)
    actor = Actor(user=job.started_by, name=str(job.started_by or "system"))
    try:
        with transaction.atomic():
            Host.objects.select_for_update().get(pk=batch.host_id)
            written = _applied(batch, Choice.from_json(job.inputs), actor, report)
    except Exception as error:
        expected = isinstance(error, QuartermasterError)
        problem = _sentence(error) if expected else "It could not be applied; the log says why."
        _set(batch, state=ImportBatch.State.READ, problem=problem[:500])
        raise
    return {"changes": len(written)}


def _sentence(error: Exception) -> str:
    fields = getattr(error, "fields", {})
    return " ".join(dict.fromkeys([str(error), *fields.values()])) if fields else str(error)


def _set(batch: ImportBatch, **values: Any) -> None:
    ImportBatch.objects.filter(pk=batch.pk).update(**values)


def _applied(batch: ImportBatch, choice: Choice, actor: Actor, report: ControlReporter) -> list[dict[str, Any]]:
    items = items_of_batch(batch)
    wanted = chosen(batch, choice, actor.user)
    writer = _Writer(batch, actor)
    writer.check_unchanged(wanted)
    groups = _grouped(wanted)
    for done, (target, own) in enumerate(groups.items()):
        report.progress("Applying", done, len(groups), unit="changes", current=target.subject[:200])
        writer.write(target, own)
    # Keys need not stay in the report of a batch that is through.
    batch.report = {**batch.report, "items": [item_to_json(_masked(item)) for item in items]}
    batch.state, batch.applied, batch.problem = ImportBatch.State.APPLIED, writer.written, ""
    batch.applied_at = timezone.now()
    batch.save(update_fields=["report", "state", "applied", "problem", "applied_at"])
    counts = {"rows": [None, len(writer.written)], "items": [None, len(wanted)]}
    record(actor, "import.apply", subject=batch, label=batch.name, host_slug=batch.host.slug, changes=counts)
    return writer.written


def _masked(item: Item) -> Item:
    return replace(item, value=MASKED, ours=MASKED if item.ours is not None else None) if item.secret else item


ORDER = (
    Kind.ROOT,
    Kind.BACKEND,
    Kind.API_KEY,
    Kind.SETTING,
    Kind.FLEET_VARIANT,
    Kind.OVERRIDE,
    Kind.VARIANT,
    Kind.RULE,
    Kind.FRAGMENT,
)
"""What later writes depend on comes first. A rule that came before a model's own settings would be copied into them."""


def _grouped(items: Iterable[Item]) -> dict[Target, list[Item]]:
    """The items of one row together, under a target without its field."""
    found: dict[Target, list[Item]] = {}
    for item in sorted(items, key=lambda item: ORDER.index(item.target.kind)):
        found.setdefault(replace(item.target, field=""), []).append(item)
    return found


class _Writer:
    """Writes items row by row, and remembers each row with the version that it has then."""

    def __init__(self, batch: ImportBatch, actor: Actor) -> None:
        self.batch, self.actor = batch, actor
        self.host = batch.host
        self.form = form_of(batch.dialect)
        self.rows = {row.path: row for row in Row.objects.filter(host=self.host).select_related("host")}
        self.written: list[dict[str, Any]] = []

    def check_unchanged(self, items: Iterable[Item]) -> None:
        """Raises EditConflict where something was set since the report was made."""
        stored = Stored(self.host, host_facts(self.host), self.rows, self.form)
        for item in items:
            target = item.target
            gone = target.kind in (Kind.OVERRIDE, Kind.VARIANT) and target.subject not in self.rows
            if gone:
                raise Refused(f"{target.subject} is no model of this host any more. Read the file again.")
            now = stored.value(target)
            if target.kind != Kind.FRAGMENT and now != item.ours:
                raise EditConflict(
                    f"{item.source} was set here since the file was read. Read it again.", saved={}, version=0
                )

    def write(self, target: Target, items: list[Item]) -> None:
        values = {item.target.field: item.value for item in items if item.target.field}
        match target.kind:
            case kind if kind in TAKERS:
                if made := TAKERS[kind].write(self.host, target, items, self.actor):
                    self._note(kind, target.subject, made["version"], made["before"], target.variant)
            case Kind.SETTING:
                self._setting(target.subject, values)
            case Kind.OVERRIDE:
                self._override(target.subject, values)
            case Kind.VARIANT:
                self._variant(target, values)
            case Kind.FRAGMENT:
                self._fragment(target.subject, items)

    def _note(self, kind: str, subject: str, version: int, before: Any, variant: str = "") -> None:
        self.written.append(
            {"kind": kind, "subject": subject, "variant": variant, "version": version, "before": before}
        )

    def _setting(self, name: str, values: Mapping[str, Any]) -> None:
        held: HostSetting = section(Host.objects.get(pk=self.host.pk), name)
        before, wanted = dict(held.values), {**held.values, **values}
        if name not in SECTION_SAVES:
            raise Refused(f"There is no section {name}.")
        row = SECTION_SAVES[name](host=self.host, values=wanted, version=held.version, actor=self.actor)
        if row.version > held.version:
            self._note(Kind.SETTING, name, row.version, before)

    def _override(self, path: str, values: dict[str, Any]) -> None:
        row = self.rows[path]
        held = pinned(row)
        if "backend" in values:
            named = Q(path=values["backend"]) | Q(slug=values["backend"])
            found = Backend.objects.filter(named, host=self.host).first() if values["backend"] else None
            if found is None and values["backend"]:
                raise Refused(f"{values['backend']} is not registered: tick it among the executables too.")
            values = {**values, "backend": found.slug if found else ""}
        own = save_override(row=row, values=values, version=held.version, actor=self.actor, action="import")
        if own is not None and own.version > held.version:
            before = held.fields if held.own else None
            self._note(Kind.OVERRIDE, path, own.version, before)

    def _variant(self, target: Target, values: dict[str, Any]) -> None:
        row = self.rows[target.subject]
        held = Variant.objects.filter(
            override__host=self.host, override__match=row.path, override__quant="", name__iexact=target.variant
        ).first()
        if held is None:
            made = add_variant(row=row, name=target.variant, values=values, actor=self.actor)
            self._note(Kind.VARIANT, row.path, made.version, None, made.name)
            return
        before = dict(held.fields)
        saved = save_variant(
            row=row, variant=held, values=values, version=held.version, actor=self.actor, action="import"
        )
        if saved.fields != before:
            self._note(Kind.VARIANT, row.path, saved.version, before, saved.name)

    def _fragment(self, served_id: str, items: list[Item]) -> None:
        held = Fragment.objects.filter(host=self.host, form=self.form, served_id=served_id).first()
        before = dict(held.fields) if held else {}
        fields = dict(before)
        for item in items:
            fields |= {item.target.field: item.value} if item.target.field else item.value
        saved = save_fragment(
            host=self.host,
            form=self.form,
            served_id=served_id,
            fields=fields,
            version=held.version if held else 0,
            actor=self.actor,
            action="import",
        )
        if saved is not None and saved.fields != before:
            # A fragment may hold keys: what undoing brings back is kept only where there was something before.
            self._note(Kind.FRAGMENT, served_id, saved.version, before or None)
