"""What fits on this box: one model at several windows, each the plan that this window pinned would get (web.md 5.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpus_app.core.budget import Budget
from models_app.core.catalog import Header, Placement, Row
from models_app.core.launch.tokens import POSIX
from models_app.core.planning.launch_plan import FITS, OVER, UNKNOWN, PlannedLaunch
from models_app.core.planning.question import stepped
from models_app.core.planning.reasons import unjudged
from models_app.core.planning.rope import native_window
from models_app.core.planning.wishes import Excess
from models_app.core.plans.llm import Headers, Model, place_profile
from models_app.core.plans.rows import no_header, profiled, skip_reason
from models_app.core.settings import Override, Settings
from models_app.core.state.profile_set import Profile

STEPPED = "stepped"
"""Everything is where it should be, but only with a smaller type of KV cache."""
BEYOND = "beyond"
"""The window is longer than the model was trained for."""
UNPLANNED = "unplanned"
PINNED = "pinned"
"""The launch text of the model asks for another window."""
SHORTEST_TIERS = (8192, 16384)
"""Windows below the ladder that people ask about."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One model at one window. `state` is a verdict of planning, or one of the words above."""

    tokens: int
    state: str
    vram_bytes: int = 0
    ram_bytes: int = 0
    short_vram_bytes: int = 0
    """What the fullest device lacks, where it does not fit."""
    short_ram_bytes: int = 0
    placement: Placement | None = None
    block_count: int = 0
    on_cpu: bool = False
    reason: str = ""
    """Why there is no figure."""

    @property
    def total_bytes(self) -> int:
        return self.vram_bytes + self.ram_bytes


def tiers_of(settings: Settings) -> tuple[int, ...]:
    """The windows of the table in ascending order: the rungs of the ladder, and two shorter ones."""
    return tuple(sorted({*SHORTEST_TIERS, *(stepped(rung) for rung in settings.dense_ctx_ladder if rung > 0)}))


def fits_of(
    row: Row,
    header: Header | None,
    tiers: Sequence[int],
    *,
    settings: Settings,
    override: Override | None = None,
    budget: Budget,
    headers: Headers = no_header,
    excesses: Sequence[Excess] = (),
    word_rules: str = POSIX,
) -> dict[int, Fit]:
    """Window -> how the row does there under this budget. Never fails for what a file says."""
    own = override or Override()
    reason = skip_reason(row, header, settings, own)
    if reason or header is None:
        return {tokens: Fit(tokens, UNPLANNED, reason=reason) for tokens in tiers}
    model, (base, *_) = profiled(
        row,
        header,
        settings=settings,
        override=own,
        budget=budget,
        headers=headers,
        excesses=excesses,
        word_rules=word_rules,
    )
    return {tokens: _fit(model, base, tokens) for tokens in tiers}


def _fit(model: Model, base: Profile, tokens: int) -> Fit:
    trained = native_window(model.header.context_length)
    if tokens > trained:
        return Fit(tokens, BEYOND, reason=f"trained for {trained:,} tokens")
    planned = place_profile(model, replace(base, override=replace(base.override, ctx=tokens))).planned
    window = planned.answer.placement.ctx_tokens
    if window != tokens:
        return Fit(tokens, PINNED, reason=f"the launch text asks for {window:,} tokens")
    if planned.verdict == UNKNOWN:
        return Fit(tokens, UNKNOWN, reason=unjudged(model.table, planned))
    short_vram, short_ram = _missing(planned) if planned.verdict == OVER else (0, 0)
    return Fit(
        tokens=tokens,
        state=STEPPED if planned.verdict == FITS and planned.answer.stepped_down else planned.verdict,
        vram_bytes=planned.est_vram_bytes,
        ram_bytes=planned.est_ram_bytes,
        short_vram_bytes=short_vram,
        short_ram_bytes=short_ram,
        placement=planned.answer.placement,
        block_count=model.header.block_count,
        on_cpu=planned.on_cpu,
    )


def _missing(planned: PlannedLaunch) -> tuple[int, int]:
    """What the fullest device and RAM lack."""
    budget = planned.wishes.budget
    excess = (held - most for held, most in zip(planned.device_bytes, budget.device_bytes, strict=True))
    ram = planned.est_ram_bytes - budget.ram_bytes if budget.ram_bytes else 0
    return max(0, *excess, 0), max(0, ram)
