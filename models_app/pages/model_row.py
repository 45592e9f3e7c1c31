"""One row of the list of models: a model with its quants, and the figures of the quant that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from gpus_app.core.units import GIB
from gpus_app.models import Host
from gpus_app.selectors import measured_devices, target_vram_gib
from models_app.models import Row, StoredPlan
from models_app.pages.engine_words import class_name
from models_app.selectors import ModelFilter, ModelGroup
from models_app.selectors.listing import base_plan
from models_app.selectors.sight import HostSight
from quartermaster_site.access.permissions import Level, may
from quartermaster_site.drawings import MiniBar, mini_bar
from quartermaster_site.figures import UNKNOWN, count, gib, gib_or_dash

LOOKS = {
    "fits": ("ok", "fits", "ok"),
    "spills": ("warn", "spills to CPU", "part"),
    "over": ("bad", "does not fit", "bad"),
    "unknown": ("warn", "cannot judge", "warn"),
    "unserved": ("", "not served", "hidden"),
    "offline": ("bad", "offline", "off"),
    "missing": ("bad", "missing", "off"),
    "unreadable": ("bad", "unreadable", "bad"),
    "waiting": ("", "waiting for a plan", "wait"),
}
"""State -> tone, word, icon."""


@dataclass(frozen=True, slots=True)
class HostScale:
    """What all small bars of one host share: the fitted memory, and the line of the VRAM target."""

    name: str
    capacity_bytes: int
    budget_bytes: int

    @classmethod
    def of(cls, host: Host) -> HostScale:
        measured = measured_devices(host)
        capacity = sum(measured[device.index].total_bytes for device in host.devices.all() if device.eligible)
        return cls(host.name, capacity, int(target_vram_gib(host) * GIB))


@dataclass(frozen=True, slots=True)
class Pill:
    text: str
    title: str
    url: str
    fragment: str
    on: bool


@dataclass(frozen=True, slots=True)
class ModelItem:
    """A model as a table row. `heading` is filled on the first one of a family."""

    slug: str
    pk: int
    """Of the quant that is shown."""
    name: str
    served_id: str
    url: str
    pills: tuple[Pill, ...]
    host: str
    model_class: str
    family: str
    size: str
    context: str
    bar: MiniBar | None
    vram: str
    ram: str
    placement: str
    tone: str
    word: str
    shape: str
    warnings: int
    issues_url: str
    changed_by: str
    may_edit: bool
    heading: str = ""
    heading_count: int = 0


def state_of(row: Row, plan: StoredPlan | None) -> str:
    """A trouble on disk first, then the verdict of the plan."""
    if row.state in (Row.State.OFFLINE, Row.State.MISSING, Row.State.UNREADABLE):
        return row.state
    if not row.model_class:
        return "unserved"
    if plan and plan.verdict == "unplanned":
        return "unserved"
    return plan.verdict if plan and plan.verdict in LOOKS else "waiting"


def model_item(
    group: ModelGroup,
    scale: HostScale,
    wanted: ModelFilter,
    user: Any,
    *,
    show_host: bool,
    heading: str = "",
    members: int = 0,
) -> ModelItem:
    """The figures of the chosen quant, and one pill per quant; what the person may do is about the chosen one."""
    shown, plan = group.chosen, base_plan(group.chosen)
    texts, family = pill_texts(group.rows), family_of(shown, user)
    tone, word, shape = LOOKS[state_of(shown, plan)]
    sized = plan if plan is not None and plan.verdict not in ("unplanned", "unknown") else None
    return ModelItem(
        slug=str(group.rows[0].pk),
        pk=shown.pk,
        name=shown.base_id,
        served_id=shown.served_id,
        url=reverse("models:model-show", args=[shown.pk]),
        pills=tuple(_pill(row, text, group, wanted) for row, text in zip(group.rows, texts, strict=True)),
        host=scale.name if show_host else "",
        model_class=class_name(shown.model_class) if shown.model_class else UNKNOWN,
        family=family if family != shown.base_id else "",
        size=gib(shown.size_bytes),
        context=count(plan.ctx_tokens) if plan and plan.ctx_tokens else UNKNOWN,
        bar=_bar(sized, scale) if sized and scale.budget_bytes else None,
        vram=gib_or_dash(sized.est_vram_bytes) if sized else UNKNOWN,
        ram=gib_or_dash(sized.est_ram_bytes) if sized else UNKNOWN,
        placement=(plan.placement_text if plan else "") or UNKNOWN,
        tone=tone,
        word=word,
        shape=shape,
        warnings=plan.warning_count if plan else 0,
        issues_url=f"{reverse('models:issue-list')}?{urlencode({'q': shown.file_name})}",
        changed_by=group.changed_by,
        may_edit=may(user, Level.EDIT, shown),
        heading=heading,
        heading_count=members,
    )


def family_of(row: Row, user: Any) -> str:
    """The name of a model's family, "" where that is the name of something hidden."""
    return row.family_key if HostSight(user, row.host_id).says(row.family_key) else ""


def _bar(plan: StoredPlan, scale: HostScale) -> MiniBar | None:
    return mini_bar(plan.est_vram_bytes, scale.capacity_bytes, scale.budget_bytes)


def pill_texts(rows: Sequence[Row]) -> list[str]:
    """The quant of each; files of the same quant are numbered."""
    names = [row.quant or row.quant_label or "as is" for row in rows]
    return [
        f"{name} #{names[: index + 1].count(name)}" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


def _pill(row: Row, text: str, group: ModelGroup, wanted: ModelFilter) -> Pill:
    others = {sibling.pk for sibling in group.rows} - {row.pk}
    query = wanted.query(picks=(wanted.picks - others) | {row.pk})
    return Pill(
        text=text,
        title=f"{row.served_id}, {row.quant_label} by its tensors" if row.quant_label else row.served_id,
        url=f"{reverse('models:model-list')}{query}",
        fragment=f"{reverse('models:model-row', args=[row.pk])}{wanted.query()}",
        on=len(group.rows) > 1 and row.pk == group.chosen.pk,
    )
