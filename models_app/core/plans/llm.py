"""One profile of a chat model on llama-server: from the override to the planned command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpus_app.core.budget import Budget
from models_app.core.catalog import Header, Placement, Plan, Row
from models_app.core.launch.backends import executable, executable_word
from models_app.core.launch.compose import Composition
from models_app.core.launch.cpu_device import keeps_off_gpus
from models_app.core.launch.llama import llama_command
from models_app.core.launch.numbers import number_text
from models_app.core.launch.ownership import runs_text_only
from models_app.core.launch.profile import LaunchProfile
from models_app.core.launch.tokens import POSIX
from models_app.core.launch.whole_text import projector_in_text, with_server_defaults
from models_app.core.planning.batch import effective_ubatch, is_long
from models_app.core.planning.cache_choice import usable_pairs
from models_app.core.planning.checkpoints import Checkpoints, resolve_checkpoints
from models_app.core.planning.classic_kv import is_recurrent, kv_line
from models_app.core.planning.drafters import (
    draft_file_attaches,
    draft_length,
    effective_spec,
    longest_draft,
    rollback_snapshots,
    uses_baked_head,
)
from models_app.core.planning.launch_check import model_problem
from models_app.core.planning.launch_plan import UNKNOWN, PlannedLaunch, plan_launch
from models_app.core.planning.question import Question
from models_app.core.planning.reasons import reasons_of
from models_app.core.planning.side_memory import Projector, projector_of
from models_app.core.planning.suggestions import suggestions_of
from models_app.core.planning.table import ModelTable
from models_app.core.planning.wishes import NO_EXCESS, Companions, Excess, Wishes
from models_app.core.plans.launch_devices import launch_budget, unknown_devices
from models_app.core.plans.pinned import Pinned, pinned_of
from models_app.core.settings import Override, Settings
from models_app.core.state.profile_set import ON_GPU, Profile
from models_app.core.units import from_gib

DEFAULT_MIN_CTX = 32768
UNKNOWN_CACHE_CTX = 32768
"""Window of a model whose cache can't be computed (sizing.md 10.2 c)."""
_LONG_HEADROOM_GIB = 0.5

Headers = Callable[[str], Header | None]


@dataclass(frozen=True, slots=True)
class Model:
    """One row with what was read of it; shared by all its profiles."""

    row: Row
    header: Header
    table: ModelTable
    settings: Settings
    budget: Budget
    headers: Headers
    outputs: str = "server"
    excesses: Sequence[Excess] = ()
    word_rules: str = POSIX
    """How the host's system splits a launch text."""
    joined_lora_scale: bool = False
    """The server takes the scale of an adapter behind its file, as one word."""


@dataclass(frozen=True, slots=True)
class PlannedProfile:
    """One profile with its place in memory, before its command is written."""

    pinned: Pinned
    spec: str
    planned: PlannedLaunch


def plan_profile(model: Model, profile: Profile) -> Plan:
    """The plan of one profile, its command included."""
    return _plan(model, profile, place_profile(model, profile))


def place_profile(model: Model, profile: Profile) -> PlannedProfile:
    """The launch that the search finds for one profile."""
    settings = model.settings
    budget = _budget(model, profile.override)
    own = with_server_defaults(profile.override, model.word_rules)
    pinned = pinned_of(model.header, own, len(budget.device_bytes), settings.kv_quant, model.word_rules)
    spec = _spec(model, pinned.override)
    companions = _companions(model, profile, pinned, spec)
    wishes = Wishes(
        question=_question(model, pinned, spec),
        budget=budget,
        companions=companions,
        headroom_bytes=from_gib(_headroom_gib(settings, pinned)),
        excess=excess_of(model.excesses, executable(settings, profile.override, "llm")),
        compute_factor=settings.compute_buf_factor,
        pinned=pinned.knobs,
        unjudged=pinned.unjudged,
    )
    return PlannedProfile(pinned, spec, _planned(model, pinned, wishes))


def excess_of(excesses: Sequence[Excess], server: str) -> Excess:
    """What was measured with this executable, as a command names it."""
    return next((excess for excess in excesses if executable_word(excess.server) == server), NO_EXCESS)


def _budget(model: Model, override: Override) -> Budget:
    """The profile's own target over the devices that it uses, or none for a model that is kept off the GPU."""
    if keeps_off_gpus(override, model.word_rules):
        return model.budget.without_devices()
    budget = launch_budget(model.budget, override, model.word_rules)
    return budget.with_target(from_gib(override.vram_target_gb)) if override.vram_target_gb > 0 else budget


def _planned(model: Model, pinned: Pinned, wishes: Wishes) -> PlannedLaunch:
    """The search; a mixture whose window turned out long on a small machine is asked again with a smaller batch."""
    planned = plan_launch(model.header, model.table, wishes)
    ubatch = _ubatch(model, pinned, planned.answer.placement.ctx_tokens)
    if ubatch >= wishes.question.ubatch:
        return planned
    return plan_launch(model.header, model.table, replace(wishes, question=replace(wishes.question, ubatch=ubatch)))


def _ubatch(model: Model, pinned: Pinned, ctx_tokens: int) -> int:
    target_gib = model.budget.target_bytes / from_gib(1)
    return effective_ubatch(model.header.is_moe, is_long(ctx_tokens), target_gib, pinned.override.ub)


def _headroom_gib(settings: Settings, pinned: Pinned) -> float:
    headroom = max(0.0, settings.vram_overhead_gb)
    return max(headroom, _LONG_HEADROOM_GIB) if is_long(pinned.ctx or 0) else headroom


def _spec(model: Model, override: Override) -> str:
    return effective_spec(model.header.nextn_layers > 0, model.row.draft_kind, override.spec)


def _question(model: Model, pinned: Pinned, spec: str) -> Question:
    settings, own, header = model.settings, pinned.override, model.header
    draft_tokens = draft_length(spec, own.spec_draft_n_max)
    ladder_top = settings.dense_ctx_ladder[0] if settings.dense_ctx_ladder else 0
    if model.table.engine == "classic":
        ladder_top = min(ladder_top or UNKNOWN_CACHE_CTX, UNKNOWN_CACHE_CTX)
    return Question(
        ceiling_tokens=pinned.ceiling_tokens,
        ladder_top=ladder_top,
        min_ctx=settings.dense_min_ctx if settings.dense_min_ctx > 0 else DEFAULT_MIN_CTX,
        moe_ctx_target=settings.moe_ctx_target if settings.moe_ctx_target > 0 else pinned.ceiling_tokens,
        kv_pairs=(pinned.pair,) if pinned.pair else usable_pairs(model.table, own.flash_attn != "off"),
        ctx=pinned.ctx,
        gpu_layers=pinned.gpu_layers,
        cpu_moe_layers=pinned.cpu_moe_layers,
        tensor_split=pinned.tensor_split,
        slots=pinned.slots,
        ubatch=_ubatch(model, pinned, pinned.ctx or 0),
        batch=pinned.batch,
        kv_in_ram=own.kv_in_ram,
        kv_unified=pinned.kv_unified,
        flash_attn=own.flash_attn != "off",
        swa_full=own.swa_full,
        rollback_snapshots=rollback_snapshots(header.architecture, spec, draft_tokens),
        draft_tokens=longest_draft(spec, draft_tokens, own.spec_ngram_size_m),
        outputs=model.outputs,
    )


def _companions(model: Model, profile: Profile, pinned: Pinned, spec: str) -> Companions:
    row, header, own = model.row, model.header, pinned.override
    attached = bool(row.draft_path) and draft_file_attaches(spec, row.draft_kind)
    return Companions(
        projector=_projector(model, profile),
        draft_file_bytes=row.draft_size_bytes if attached else 0,
        baked_head=uses_baked_head(spec, header.nextn_layers, attached),
        draft_k=own.kv_k_draft,
        draft_v=own.kv_v_draft,
        checkpoints=_checkpoints(header, own),
    )


def _projector(model: Model, profile: Profile) -> Projector | None:
    """The projector that this profile really loads, at its own size."""
    if not profile.projector:
        return None
    own = (projector_in_text(profile.override, model.word_rules)[0] or profile.override.mmproj_file).strip()
    header = model.headers(own or model.row.mmproj_path)
    size = header.file_size_bytes if header is not None else 0
    if not own:
        size = size or model.row.mmproj_size_bytes
    in_ram = (
        profile.projector != ON_GPU
        or not model.budget.device_bytes
        or keeps_off_gpus(profile.override, model.word_rules)
    )
    return projector_of(header, size, model.settings.vision_overhead_gb, in_ram=in_ram)


def _checkpoints(header: Header, own: Override) -> Checkpoints:
    line = kv_line(header, "f16", "f16")
    sliding = line is not None and line.const_gib > 0
    return resolve_checkpoints(is_recurrent(header), sliding, own.ctx_checkpoints, own.checkpoint_min_step)


def _plan(model: Model, profile: Profile, placed: PlannedProfile) -> Plan:
    planned = placed.planned
    answer = planned.answer
    command = _command(model, profile, placed)
    judged = planned.verdict != UNKNOWN  # no figure is better than one that nothing supports
    return Plan(
        profile_id=profile.id,
        model_class="llm",
        verdict=planned.verdict,
        placement=answer.placement,
        projection=answer.projection,
        terms=planned.terms if judged else (),
        est_vram_bytes=planned.est_vram_bytes if judged else 0,
        est_ram_bytes=planned.est_ram_bytes if judged else 0,
        target_bytes=planned.wishes.budget.target_bytes,
        lines=command.lines,
        tokens=command.tokens,
        reasons=reasons_of(model.table, planned),
        warnings=_warnings(model, profile, placed, command),
        suggestions=suggestions_of(model.table, planned),
        skip_reason=profile.skip_reason,
        unlisted=profile.override.unlisted,
        profile=profile.kind,
        as_written=runs_text_only(profile.override),
        device_numbers=planned.wishes.budget.numbers,
    )


def _warnings(model: Model, profile: Profile, placed: PlannedProfile, command: Composition) -> tuple[str, ...]:
    answer = placed.planned.answer
    warnings = [*answer.projection.warnings, *placed.pinned.warnings, *command.warnings]
    if unknown := unknown_devices(model.budget, profile.override, model.word_rules):
        warnings.append(unknown)
    if refusal := model_problem(model.table, answer.launch):
        warnings.append(f"llama-server will refuse this launch: {refusal}.")
    if command.error:
        warnings.append(f"The launch text can't be taken apart: {command.error}")
    return tuple(warnings)


def _command(model: Model, profile: Profile, placed: PlannedProfile) -> Composition:
    planned = placed.planned
    return llama_command(
        model.settings,
        model.header,
        model.row,
        _launch_profile(profile, planned, placed.spec),
        planned.answer.placement,
        replace(profile.override, device="cpu") if planned.on_cpu else profile.override,
        joined_lora_scale=model.joined_lora_scale,
        rules=model.word_rules,
    )


def _launch_profile(profile: Profile, planned: PlannedLaunch, spec: str) -> LaunchProfile:
    budget, placement = planned.wishes.budget, planned.answer.placement
    projector = planned.wishes.companions.projector
    # Hiding the devices from the server does not hide them from its projector.
    in_ram = projector is not None and (projector.in_ram or planned.on_cpu)
    return LaunchProfile(
        spec=spec,
        checkpoints=planned.wishes.companions.checkpoints,
        vision=bool(profile.projector),
        projector_in_ram=in_ram,
        tensor_split=_shares(placement),
        main_gpu=budget.launch_main,
        lone_gpu=budget.launch_main if budget.is_lone else 0,
        device_ids=budget.backend_ids,
    )


def _shares(placement: Placement) -> tuple[str, ...]:
    return tuple(number_text(share) for share in placement.tensor_split)
