"""The context curve: every point is what a plan with that window would hold, and the marks are where plans stop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpus_app.core.budget import Budget, budget_of
from models_app.core.catalog import Header, Placement, Plan
from models_app.core.planning.context_curve import RAM, VRAM, ContextCurve
from models_app.core.plans import plan_curve, plan_row
from models_app.core.settings import Override, Settings
from tests.core.test_plan_row import row_of

MODELS = (
    "llama31-8b-q4_k_m",
    "gemma3-12b-q4_k_m",
    "qwen35-9b-q4_k_m",
    "gpt-oss-20b-mxfp4",
    "glm45-air-ud_q2",
    "deepseek-v2-lite-q4_k_m",
    "codestral-mamba-7b-q8_0",
    "gemma3n-e4b-q4_k_m",
)
BUDGETS = {
    "one card": budget_of((24.0,), 64.0),
    "small card": budget_of((8.0,), 64.0),
    "two cards": budget_of((8.0, 12.0), 64.0),
    "none": budget_of((), 32.0),
}


def planned(header: Header, budget: Budget, override: Override | None = None) -> tuple[Plan, ContextCurve | None]:
    row, own = row_of(header), override or Override()
    return (
        plan_row(row, header, settings=Settings(), override=own, budget=budget)[0],
        plan_curve(row, header, settings=Settings(), override=own, budget=budget),
    )


def pinned_like(placement: Placement, ctx_tokens: int) -> Override:
    """Everything as planned but the window."""
    moved = f" --n-cpu-moe {placement.cpu_moe_layers}" if placement.cpu_moe_layers else ""
    return Override(
        ctx=ctx_tokens,
        kv_k=placement.type_k,
        kv_v=placement.type_v,
        ub=placement.ubatch,
        custom_args=f"-ngl {placement.gpu_layers}{moved}",
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())
def test_a_point_is_what_a_plan_with_that_window_holds(zoo_header, model: str, budget: Budget) -> None:
    header = zoo_header(model)
    plan, curve = planned(header, budget)
    assert curve is not None
    assert plan.placement is not None
    own = [point for point in curve.own.points if point.ctx_tokens % 4096 == 0]
    assert (curve.now.ctx_tokens, curve.now.vram_bytes) == (plan.placement.ctx_tokens, plan.est_vram_bytes)
    assert curve.now in own
    # Devices share the layers anew for every plan, so their sum differs a little.
    slack = 0.01 if len(budget.device_bytes) > 1 else 0.0
    for point in own:
        other, _ = planned(header, budget, pinned_like(plan.placement, point.ctx_tokens))
        assert point.vram_bytes == pytest.approx(other.est_vram_bytes, rel=slack, abs=0)
        assert point.ram_bytes == pytest.approx(other.est_ram_bytes, rel=slack, abs=0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())
def test_the_mark_parts_what_fits_from_what_does_not(zoo_header, model: str, budget: Budget) -> None:
    _, curve = planned(zoo_header(model), budget)
    assert curve is not None
    for line in (curve.own, curve.smaller):
        if line is not None:
            windows = [point.ctx_tokens for point in line.points]
            assert windows == sorted(set(windows))
            assert windows[-1] >= curve.ceiling_tokens
            for point in line.points:
                if point.ctx_tokens <= curve.top_tokens:
                    assert point.fits == (point.ctx_tokens <= line.longest_tokens)
    assert [p.vram_bytes for p in curve.own.points] == sorted(p.vram_bytes for p in curve.own.points)


def test_a_smaller_cache_is_a_second_line_only_where_it_works_and_gains(zoo_header) -> None:
    _, roomy = planned(zoo_header("llama31-8b-q4_k_m"), budget_of((24.0,), 64.0))
    assert roomy is not None
    assert roomy.smaller is not None
    assert roomy.smaller.pair.k == "q8_0"
    for own, smaller in zip(roomy.own.points, roomy.smaller.points, strict=True):
        assert own.ctx_tokens == smaller.ctx_tokens
        assert own.vram_bytes > smaller.vram_bytes
    _, without_cache = planned(zoo_header("codestral-mamba-7b-q8_0"), budget_of((24.0,), 64.0))
    assert without_cache is not None
    assert without_cache.smaller is None
    pinned = Override(kv_k="q8_0", kv_v="q8_0")
    _, already = planned(zoo_header("llama31-8b-q4_k_m"), budget_of((24.0,), 64.0), pinned)
    assert already is not None
    assert already.smaller is None
    _, without_flash = planned(zoo_header("llama31-8b-q4_k_m"), budget_of((24.0,), 64.0), Override(flash_attn="off"))
    assert without_flash is not None
    assert without_flash.smaller is None


def test_what_is_drawn_is_what_gets_full(zoo_header) -> None:
    header = zoo_header("llama31-8b-q4_k_m")

    def place(budget: Budget, **changes: object) -> str:
        curve = planned(header, budget, Override(**changes))[1]  # type: ignore[arg-type]
        assert curve is not None
        return curve.place

    assert place(budget_of((24.0,), 64.0)) == VRAM
    assert place(budget_of((), 64.0)) == RAM
    assert place(budget_of((24.0,), 64.0), kv_in_ram=True) == RAM


def test_a_pinned_window_between_two_steps_that_fits_is_within_the_mark(zoo_header) -> None:
    plan, curve = planned(zoo_header("llama31-8b-q4_k_m"), budget_of((8.0,), 64.0), Override(custom_args="-c 43000"))
    assert curve is not None
    assert curve.now.ctx_tokens == 43000
    assert plan.verdict in ("fits", "spills")
    assert curve.own.longest_tokens >= 43000


def test_a_header_that_cannot_be_judged_has_no_curve(zoo_header) -> None:
    header = replace(zoo_header("llama31-8b-q4_k_m"), block_count=0)
    plan, curve = planned(header, budget_of((24.0,), 64.0))
    assert plan.verdict == "unknown"
    assert curve is None
    row = replace(row_of(header), model_class="")
    assert plan_curve(row, header, settings=Settings(), budget=budget_of((24.0,), 64.0)) is None


def test_other_profiles_have_curves_of_their_own(zoo_header) -> None:
    header, own = zoo_header("llama31-8b-q4_k_m"), Override(ctx_variants=(8192,))
    row, budget = row_of(header), budget_of((24.0,), 64.0)
    _, tier = plan_row(row, header, settings=Settings(), override=own, budget=budget)
    curve = plan_curve(row, header, tier.profile_id, settings=Settings(), override=own, budget=budget)
    assert curve is not None
    assert (curve.now.ctx_tokens, curve.now.vram_bytes) == (8192, tier.est_vram_bytes)
