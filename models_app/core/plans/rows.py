"""Every profile of one row. Classes whose planning is not built are said so, and never served as a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpus_app.core.budget import Budget
from gpus_app.core.runtimes import ROCM, rocm_verdict
from models_app.core.catalog import Header, Plan, Row
from models_app.core.classes.dispatch import unplanned_reason
from models_app.core.launch.backends import engine_of, executable
from models_app.core.planning.context_curve import ContextCurve, context_curve
from models_app.core.planning.table import model_table
from models_app.core.plans.llm import Headers, Model, place_profile, plan_profile
from models_app.core.settings import BackendEntry, Override, Settings
from models_app.core.state.profile_set import Profile, ProfiledModel, profile_set

UNPLANNED = "unplanned"


def no_header(_path: str) -> Header | None:
    return None


def plan_row(
    row: Row,
    header: Header | None,
    *,
    settings: Settings,
    override: Override | None = None,
    budget: Budget,
    backends: Sequence[BackendEntry] = (),
    headers: Headers = no_header,
    outputs: str = "server",
) -> tuple[Plan, ...]:
    """The plans of a row, the base first. Never fails for what a file says: what can't be planned says why.

    `headers` gives the header of a companion file, None where it can't be read; `backends` replaces the registry of
    the settings where it is given; `outputs` is that of `Launch`.
    """
    own = override or Override()
    if backends:
        settings = replace(settings, backends=tuple(backends))
    reason = skip_reason(row, header, settings, own)
    if reason or header is None:
        return (_unplanned(row, own, reason),)
    model, profiles = profiled(
        row, header, settings=settings, override=own, budget=budget, headers=headers, outputs=outputs
    )
    return tuple(plan_profile(model, profile) for profile in profiles)


def plan_curve(
    row: Row,
    header: Header | None,
    profile_id: str = "",
    *,
    settings: Settings,
    override: Override | None = None,
    budget: Budget,
    headers: Headers = no_header,
) -> ContextCurve | None:
    """Memory against the window for a plan that `plan_row` gives for the same arguments; None without one.

    It is the plan with this id, the base where none has it.
    """
    own = override or Override()
    if header is None or skip_reason(row, header, settings, own):
        return None
    model, profiles = profiled(row, header, settings=settings, override=own, budget=budget, headers=headers)
    profile = next((profile for profile in profiles if profile.id == profile_id), profiles[0])
    return context_curve(model.table, place_profile(model, profile).planned)


def profiled(
    row: Row,
    header: Header,
    *,
    settings: Settings,
    override: Override,
    budget: Budget,
    headers: Headers = no_header,
    outputs: str = "server",
) -> tuple[Model, tuple[Profile, ...]]:
    """What the launches of a row share, and its profiles, the base first. Only for a row without a `skip_reason`."""
    runtime_budget = _on_its_runtime(budget, settings, override)
    model = Model(row, header, model_table(header), settings, runtime_budget, headers, outputs)
    identity = ProfiledModel(
        id=row.id,
        architecture=header.architecture,
        projector_path=row.mmproj_path,
        engine=engine_of(settings, override, "llm"),
    )
    return model, profile_set(identity, override, settings)


def skip_reason(row: Row, header: Header | None, settings: Settings, override: Override) -> str:
    """Why no launch of this row can be planned, "" when one can."""
    if not row.model_class:
        return row.class_reason or "it has no class that can be served"
    reason = unplanned_reason(row.model_class)
    if reason:
        return reason
    if row.missing_shards:
        parts = ", ".join(str(number) for number in row.missing_shards)
        return f"incomplete: part {parts} of {row.shard_count} is not on disk"
    if header is None:
        return row.class_reason or "its header can't be read"
    engine = engine_of(settings, override, "llm")
    return "" if engine == "llama" else f"not planned yet: llm on {engine}"


def _on_its_runtime(budget: Budget, settings: Settings, override: Override) -> Budget:
    """The budget of the runtime that the executable is built for, where its path tells."""
    if rocm_verdict(executable(settings, override, "llm")) == ROCM:
        return replace(budget, runtime=ROCM)
    return budget


def _unplanned(row: Row, override: Override, reason: str) -> Plan:
    return Plan(
        profile_id=row.id,
        model_class=row.model_class,
        verdict=UNPLANNED,
        placement=None,
        projection=None,
        skip_reason=reason,
        unlisted=override.unlisted,
    )
