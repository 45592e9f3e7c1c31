"""What comparisons of plans show of one: few, plain values that can be kept in a cache."""

from __future__ import annotations

from dataclasses import dataclass

from models_app.core.catalog import Plan


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """Of the base profile. `ctx_tokens` is 0 where a model has no window."""

    verdict: str
    ctx_tokens: int
    est_vram_bytes: int
    est_ram_bytes: int

    @classmethod
    def of(cls, plan: Plan) -> PlanFigures:
        window = plan.placement.ctx_tokens if plan.placement else 0
        return cls(plan.verdict, window, plan.est_vram_bytes, plan.est_ram_bytes)
