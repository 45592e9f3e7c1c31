"""Classic choice of the window, and the order in which the reference sizes one profile (sizing.md 8 and 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.catalog import Header
from models_app.core.planning.classic_kv import KvLine, checkpoint_reserve_gib, is_recurrent, round_ctx
from models_app.core.planning.classic_placement import LoadPlan, expert_share, load_plan

_LEAST_KV_GIB = 0.1
_FIT_MARGIN_GIB = 0.1
_MOE_MARGIN_GIB = 0.25
_LEAST_RAM_GIB = 0.5
UNKNOWN_WINDOW = 32768
"""Window of a model whose cache can't be computed."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window and the reference's note on what limited it."""

    ctx_tokens: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class ProfileNeeds:
    """What one profile brings to the sizer; GiB and tokens."""

    target_gib: float
    max_ram_gib: float
    overhead_gib: float
    model_max: int
    ladder: Sequence[int] = ()
    min_ctx: int = 32768
    moe_ctx_target: int = 65536
    pinned_ctx: int = 0
    exact_ctx: bool = False
    """The pinned window comes from the launch text, and is rounded nowhere."""
    checkpoints: int | None = None
    checkpoint_spacing: int | None = None
    draft_slope_gib: float = 0.0
    kv_in_ram: bool = False


@dataclass(frozen=True, slots=True)
class SizedProfile:
    """Window, cost of its cache (without checkpoints, drafter included) and placement."""

    ctx_tokens: int
    kv_gib: float
    checkpoint_gib: float
    plan: LoadPlan
    note: str = ""


def dense_window(
    model_max: int,
    line: KvLine,
    file_gib: float,
    target_gib: float,
    overhead_gib: float,
    ladder: Sequence[int],
    min_ctx: int,
    allow_offload: bool,
) -> Window:
    """The window of a dense model (`GetDenseCtx`)."""
    reached = line.max_ctx(max(_LEAST_KV_GIB, target_gib - file_gib - overhead_gib))
    top = min(model_max, ladder[0]) if ladder else model_max
    if reached >= min_ctx:
        ctx = round_ctx(min(model_max, top, reached))
        if ctx >= model_max:
            return Window(ctx, "model-max")
        return Window(ctx, "ladder-top (full gpu)" if ctx >= top else "max-ctx (full gpu)")
    fits = file_gib <= target_gib - overhead_gib - _FIT_MARGIN_GIB
    if allow_offload or not fits:
        return Window(round_ctx(min(model_max, min_ctx)), "vram-limited (offload for ctx)")
    return Window(round_ctx(min(model_max, reached)), "max-ctx (full gpu, under min)")


def size_profile(header: Header, line: KvLine | None, needs: ProfileNeeds) -> SizedProfile:
    """The whole order of sizing.md 10.2; `line` is the cost of all slots together."""
    if line is None or line.slope_gib <= 0:
        return _without_line(header, needs)
    if needs.kv_in_ram:
        return _in_ram(header, line, needs)
    sized = line.steeper(needs.draft_slope_gib)
    ceiling = min(needs.model_max, needs.pinned_ctx) if needs.pinned_ctx > 0 else needs.model_max
    reserve = checkpoint_reserve_gib(line, is_recurrent(header), needs.checkpoints, ceiling, needs.checkpoint_spacing)
    overhead = needs.overhead_gib + reserve
    if header.is_moe:
        ctx, note = _moe_window(header, sized, needs, overhead), ""
        placed = load_plan(header, needs.target_gib, needs.max_ram_gib, sized.reserve_gib(ctx), overhead)
    else:
        window = _pinned_or_dense(header, sized, needs, overhead)
        ctx, note = window.ctx_tokens, window.note
        placed = load_plan(
            header, needs.target_gib, needs.max_ram_gib, sized.reserve_gib(ctx) + reserve, needs.overhead_gib
        )
    return SizedProfile(ctx, sized.reserve_gib(ctx), reserve, placed, note)


def _rounded(ctx_tokens: int, needs: ProfileNeeds) -> int:
    return max(1, ctx_tokens) if needs.exact_ctx and needs.pinned_ctx > 0 else round_ctx(ctx_tokens)


def _pinned_or_dense(header: Header, line: KvLine, needs: ProfileNeeds, overhead_gib: float) -> Window:
    pinned = needs.pinned_ctx
    if pinned > 0 and needs.exact_ctx:
        return Window(min(needs.model_max, pinned), "pinned")
    window = dense_window(
        needs.model_max,
        line,
        header.file_size_gib,
        needs.target_gib,
        overhead_gib,
        (pinned,) if pinned > 0 else needs.ladder,
        pinned if pinned > 0 else needs.min_ctx,
        pinned > 0,
    )
    return Window(min(window.ctx_tokens, round_ctx(pinned)), window.note) if pinned > 0 else window


def _moe_window(header: Header, line: KvLine, needs: ProfileNeeds, overhead_gib: float) -> int:
    if needs.pinned_ctx > 0:
        return _rounded(min(needs.model_max, needs.pinned_ctx), needs)
    size = header.file_size_gib
    if size <= needs.target_gib - _MOE_MARGIN_GIB - overhead_gib:
        room = needs.target_gib - size - overhead_gib
        return round_ctx(min(needs.model_max, line.max_ctx(max(_LEAST_KV_GIB, room))))
    rest = size * (1 - expert_share(header.architecture, header.expert_weight_share))
    room = needs.target_gib - rest - overhead_gib
    return round_ctx(min(needs.model_max, needs.moe_ctx_target, line.max_ctx(max(_LEAST_KV_GIB, room))))


def _in_ram(header: Header, line: KvLine, needs: ProfileNeeds) -> SizedProfile:
    placed = load_plan(header, needs.target_gib, needs.max_ram_gib, _LEAST_KV_GIB, needs.overhead_gib)
    room = max(_LEAST_RAM_GIB, needs.max_ram_gib - placed.ram_gib)
    ctx = round_ctx(min(needs.model_max, line.max_ctx(room)))
    if needs.pinned_ctx > 0:
        ctx = min(ctx, _rounded(needs.pinned_ctx, needs))
    return SizedProfile(ctx, line.reserve_gib(ctx), 0.0, placed, "kv in ram")


def _without_line(header: Header, needs: ProfileNeeds) -> SizedProfile:
    ctx = round_ctx(min(needs.model_max, UNKNOWN_WINDOW))
    if needs.pinned_ctx > 0:
        ctx = min(ctx, _rounded(needs.pinned_ctx, needs))
    placed = load_plan(header, needs.target_gib, needs.max_ram_gib, None, needs.overhead_gib)
    return SizedProfile(ctx, 0.0, 0.0, placed, "no kv model")
