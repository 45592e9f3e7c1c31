"""Every profile of one row. Classes whose planning is not built are said so, and never served as a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpus_app.core.budget import Budget
from gpus_app.core.runtimes import ROCM, rocm_verdict
from models_app.core.catalog import Header, Plan, Row
from models_app.core.classes.dispatch import unplanned_reason
from models_app.core.launch.backends import executable, kind_of, resolve_backend
from models_app.core.planning.table import model_table
from models_app.core.plans.llm import Headers, Model, plan_profile
from models_app.core.settings import BackendEntry, Override, Settings
from models_app.core.state.profile_set import ProfiledModel, profile_set

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
    engine = _engine(settings, own)
    reason = _skip_reason(row, header, engine)
    if reason or header is None:
        return (_unplanned(row, own, reason),)
    model = Model(row, header, model_table(header), settings, _on_its_runtime(budget, settings, own), headers, outputs)
    profiled = ProfiledModel(
        id=row.id,
        architecture=header.architecture,
        projector_path=row.mmproj_path,
        engine=engine,
    )
    return tuple(plan_profile(model, profile) for profile in profile_set(profiled, own, settings))


def _engine(settings: Settings, override: Override) -> str:
    """The kind of engine that runs chat models here."""
    entry = resolve_backend(settings.backends, override.backend, "llm")
    kind = kind_of(entry.kind) if entry is not None else None
    return kind.name if kind is not None else "llama"


def _on_its_runtime(budget: Budget, settings: Settings, override: Override) -> Budget:
    """The budget of the runtime that the executable is built for, where its path tells."""
    if rocm_verdict(executable(settings, override, "llm")) == ROCM:
        return replace(budget, runtime=ROCM)
    return budget


def _skip_reason(row: Row, header: Header | None, engine: str) -> str:
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
    return "" if engine == "llama" else f"not planned yet: llm on {engine}"


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
