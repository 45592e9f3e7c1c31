"""Every profile of one row. Classes whose planning is not built are said so, and never served as a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpus_app.core.budget import Budget
from gpus_app.core.runtimes import ROCM, rocm_verdict
from models_app.core.catalog import Header, Plan, Row
from models_app.core.classes.dispatch import BY_SLUG
from models_app.core.launch.backends import engine_of, executable
from models_app.core.launch.executables import VLLM
from models_app.core.launch.tokens import POSIX
from models_app.core.planning.context_curve import ContextCurve, context_curve
from models_app.core.planning.table import model_table
from models_app.core.planning.wishes import Excess
from models_app.core.plans.engines.registry import ENGINES, VLLM_LLM, Engine, plan_class
from models_app.core.plans.engines.request import Request, Surroundings, skipped
from models_app.core.plans.llm import Headers, Model, place_profile, plan_profile
from models_app.core.settings import Override, Settings
from models_app.core.state.profile_set import Profile, ProfiledModel, profile_set

NO_HEADER = "its header can't be read"


def no_header(_path: str) -> Header | None:
    return None


def plan_row(
    row: Row,
    header: Header | None,
    *,
    settings: Settings,
    override: Override | None = None,
    budget: Budget,
    headers: Headers = no_header,
    excesses: Sequence[Excess] = (),
    outputs: str = "server",
    surroundings: Surroundings | None = None,
    word_rules: str = POSIX,
    joined_lora_scale: bool = False,
) -> tuple[Plan, ...]:
    """The plans of a row, the base first. Never fails for what a file says: what can't be planned says why.

    `headers` gives the header of a companion file, None where it can't be read; `excesses` are what checks of this
    model have shown; `outputs` is that of `Launch`; `surroundings` are for classes with components; `word_rules` say
    how the host splits launch texts; `joined_lora_scale`: llama-server takes `FILE:SCALE` as one word.
    """
    own = override or Override()
    if reason := unusable_reason(row):
        return (skipped(row, own, reason),)
    if engine := _engine(row, settings, own):
        if header is None and engine.reads_header:
            return (skipped(row, own, row.class_reason or NO_HEADER),)
        around, head = surroundings or Surroundings(header_of=headers), header or Header()
        return plan_class(engine, Request(row, head, settings, own, budget, around, row.id, word_rules=word_rules))
    reason = skip_reason(row, header, settings, own)
    if reason or header is None:
        return (skipped(row, own, reason),)
    model, profiles = profiled(
        row,
        header,
        settings=settings,
        override=own,
        budget=budget,
        headers=headers,
        excesses=excesses,
        outputs=outputs,
        word_rules=word_rules,
    )
    model = replace(model, joined_lora_scale=joined_lora_scale)
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
    excesses: Sequence[Excess] = (),
    word_rules: str = POSIX,
) -> ContextCurve | None:
    """Memory against the window for a plan that `plan_row` gives for the same arguments; None without one.

    It is the plan with this id, the base where none has it.
    """
    own = override or Override()
    if header is None or skip_reason(row, header, settings, own):
        return None
    model, profiles = profiled(
        row,
        header,
        settings=settings,
        override=own,
        budget=budget,
        headers=headers,
        excesses=excesses,
        word_rules=word_rules,
    )
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
    excesses: Sequence[Excess] = (),
    outputs: str = "server",
    word_rules: str = POSIX,
) -> tuple[Model, tuple[Profile, ...]]:
    """What the launches of a row share, and its profiles, the base first. Only for a row without a `skip_reason`."""
    runtime_budget = _on_its_runtime(budget, settings, override)
    model = Model(row, header, model_table(header), settings, runtime_budget, headers, outputs, excesses, word_rules)
    identity = ProfiledModel(
        id=row.id,
        architecture=header.architecture,
        projector_path=row.mmproj_path,
        engine=engine_of(settings, override, "llm"),
        word_rules=word_rules,
    )
    return model, profile_set(identity, override, settings)


def unusable_reason(row: Row) -> str:
    """Why nothing can run a row, whatever its header says; "" when something may."""
    if not row.model_class:
        return row.class_reason or "it has no class that can be served"
    if row.model_class not in BY_SLUG:
        return f"nothing here serves the class {row.model_class}"
    if row.missing_shards:
        parts = ", ".join(str(number) for number in row.missing_shards)
        return f"incomplete: part {parts} of {row.shard_count} is not on disk"
    return ""


def skip_reason(row: Row, header: Header | None, settings: Settings, override: Override) -> str:
    """Why no launch of this row on llama-server as a chat model can be planned, "" when one can."""
    if reason := unusable_reason(row):
        return reason
    if row.model_class != "llm":
        return f"{row.model_class} models have no window to choose"
    if header is None:
        return row.class_reason or NO_HEADER
    engine = engine_of(settings, override, "llm")
    return "" if engine == "llama" else f"{engine} sizes its own window"


def _engine(row: Row, settings: Settings, override: Override) -> Engine | None:
    """The planner of a row's class; None for a chat model on llama-server."""
    if row.model_class == "llm":
        return VLLM_LLM if engine_of(settings, override, "llm") == VLLM else None
    return ENGINES.get(row.model_class)


def _on_its_runtime(budget: Budget, settings: Settings, override: Override) -> Budget:
    """The budget of the runtime that the executable is built for, where its path tells."""
    if rocm_verdict(executable(settings, override, "llm")) == ROCM:
        return replace(budget, runtime=ROCM)
    return budget
