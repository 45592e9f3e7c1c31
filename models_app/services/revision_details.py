"""What is kept beside a revision so that it can be compared and explained: its outline and what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import Max

from gpus_app.models import Host, HostSetting
from models_app import convert
from models_app.core.errors import ExportError
from models_app.core.export.memory_rules import BudgetFigures
from models_app.core.export.revisions.causes import Inputs, Section
from models_app.core.export.revisions.outline import outline_of_document
from models_app.core.generate import Generated, Report
from models_app.core.units import to_gib
from models_app.models import Change, Revision, RevisionDetails, Row
from models_app.services.plan_notes import PlanNotes
from models_app.services.planning import HostFacts
from quartermaster_site.version import product_version


def inputs_of(host: Host, facts: HostFacts, rows: Sequence[Row], last_change: int) -> Inputs:
    """What goes into a text that is planned now."""
    devices = facts.budget.device_names or tuple(f"GPU {n}" for n in range(len(facts.budget.device_bytes)))
    figures = dict(zip(devices, facts.budget.device_bytes, strict=False)) | {"RAM": facts.budget.ram_bytes}
    return Inputs(
        sections=_sections(host),
        files={row.path: f"{row.size_bytes}:{row.mtime_ns}" for row in rows},
        backends={backend.name or backend.slug: f"{backend.path} {backend.build}" for backend in host.backends.all()},
        figures=figures,
        version=product_version(),
        last_change=last_change,
    )


def newest_change(host: Host) -> int:
    """The number of the last change of what is pinned; 0 where nothing ever was."""
    return Change.objects.filter(host=host).aggregate(last=Max("pk"))["last"] or 0


def _sections(host: Host) -> dict[str, Section]:
    wanted = (*convert.SETTING_SECTIONS, convert.ENCODER_SECTION)
    rows = HostSetting.objects.filter(host=host, section__in=wanted).select_related("changed_by")
    return {
        row.section: Section(
            row.values, row.changed_by.get_username() if row.changed_by else "", row.changed_at.isoformat()
        )
        for row in rows
    }


def details_of(generated: Generated, inputs: Inputs) -> RevisionDetails:
    """The row of a text, not stored yet. A text that its router could not read has an empty outline."""
    try:
        outline = outline_of_document(generated.document, generated.text, generated.report.entries).as_json()
    except ExportError:
        outline = {}
    return RevisionDetails(outline=outline, inputs=asdict(inputs))


def summary_of(report: Report, notes: PlanNotes, facts: HostFacts) -> dict[str, Any]:
    """The report with what the rules V-08, V-10 and V-11 are asked about: doubtful flags and the budget."""
    entries = [
        {**item, "doubtful": list(flags)} if (flags := notes.doubtful.get(item["id"])) else item
        for item in report.entries
    ]
    return {**report.as_json(), "entries": entries, "budget": asdict(_figures(facts))}


def _figures(facts: HostFacts) -> BudgetFigures:
    """Devices by the names that the host's programs have for them."""
    named = [backend.budget for backend in facts.backends.values() if backend.budget is not None]
    devices = {
        name: to_gib(size)
        for budget in named
        if len(budget.backend_ids) > 1
        for name, size in zip(budget.backend_ids, budget.device_bytes, strict=False)
    }
    return BudgetFigures(to_gib(facts.budget.target_bytes), to_gib(facts.budget.ram_bytes), devices)


def copy_details(source: Revision, target: Revision) -> None:
    """A rollback has the outline and the inputs of the text that it brings back."""
    details = RevisionDetails.objects.filter(revision=source).first()
    if details is not None:
        RevisionDetails.objects.create(
            revision=target, outline=details.outline, inputs=details.inputs, companions=details.companions
        )
