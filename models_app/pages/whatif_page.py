"""The what-if form as rows: beside each field where its value comes from, and what automatic would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models_app.core.catalog import Plan
from models_app.core.settings import Override, Settings
from models_app.core.state.globs import is_glob
from models_app.pages.memory_page import SettingRow
from models_app.whatif_form import CATALOGUE, WhatIfForm
from quartermaster_site.figures import gib

_NOTHING: Mapping[str, str] = {}
_PICKS = (8192, 16384, 32768, 65536, 131072)


@dataclass(frozen=True, slots=True)
class Pick:
    value: str
    text: str
    on: bool


@dataclass(frozen=True, slots=True)
class FieldGroup:
    title: str
    rows: tuple[SettingRow, ...]


def automatic_values(plan: Plan, target_bytes: int, block_count: int) -> dict[str, str]:
    """What an empty field stands for: the values of the plan without any what-if."""
    placement = plan.placement
    if placement is None:
        return {}
    return {
        "ctx": str(placement.ctx_tokens),
        "parallel": str(placement.slots),
        "kvK": placement.type_k,
        "kvV": placement.type_v,
        "vramTargetGB": gib(target_bytes),
        "ngl": str(min(placement.gpu_layers, block_count + 1)),
        "nCpuMoe": str(placement.cpu_moe_layers),
        "ub": str(placement.ubatch),
    }


def field_groups(
    form: WhatIfForm,
    *,
    stored: Override,
    settings: Settings,
    automatic: Mapping[str, str] = _NOTHING,
    fits: bool = True,
) -> list[FieldGroup]:
    """`automatic` is left out where only what was typed has changed; `fits` says whether its plan fits."""
    picks = _picks(form, automatic.get("ctx", "") if fits else "")
    return [
        FieldGroup(title, tuple(_row(form, field.name, stored, settings, automatic, picks) for field in fields))
        for title, fields in form.rows()
    ]


def _row(
    form: WhatIfForm,
    key: str,
    stored: Override,
    settings: Settings,
    automatic: Mapping[str, str],
    picks: tuple[Pick, ...],
) -> SettingRow:
    typed = str(form.data.get(key, "")).strip() if form.is_bound else ""
    return SettingRow(
        field=form[key],
        set=bool(typed),
        origin="tried here, not stored" if typed else _origin(key, stored, settings),
        automatic=automatic.get(key, "") if typed else "",
        reset=bool(typed),
        picks=picks if key == "ctx" else (),
    )


def _origin(key: str, stored: Override, settings: Settings) -> str:
    field = CATALOGUE.get(key)
    if field is not None and field.is_set(getattr(stored, field.attribute)):
        return "a rule" if is_glob(stored.match) else "this model"
    if key == "vramTargetGB" or (key in ("kvK", "kvV") and settings.kv_quant):
        return "host setting"
    return "planner"


def _picks(form: WhatIfForm, most: str) -> tuple[Pick, ...]:
    """Windows that this model was trained for, and the most that fits ("" where nothing does)."""
    trained = form.limits.trained_tokens
    chosen = str(form.cleaned_data.get("ctx") or "") if form.is_bound and form.is_valid() else ""
    picks = [Pick(str(tokens), f"{tokens // 1024}k", chosen == str(tokens)) for tokens in _PICKS if tokens <= trained]
    if most and most not in {pick.value for pick in picks}:
        why = "trained length" if int(most) == trained else "most that fits"
        picks.append(Pick(most, f"{int(most):,} = {why}", chosen == most))
    return tuple(picks)
