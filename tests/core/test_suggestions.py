"""What is said to make a plan fit does make it fit, and is close to the least that would."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpus_app.core.budget import Budget, budget_of
from models_app.core.catalog import Header, Plan
from models_app.core.settings import Override
from tests.core.test_plan_row import plan
from tests.zoo import zoo

CARDS_GIB = (4, 8, 12, 24, 48)
RAM_GIB = 32


def number(pattern: str, plan: Plan) -> float | None:
    """The figure of the one suggestion that matches."""
    found = [match[1] for text in plan.suggestions if (match := re.search(pattern, text))]
    assert len(found) <= 1, plan.suggestions
    return float(found[0].replace(",", "")) if found else None


def with_more(budget: Budget, vram_gib: float = 0.0, ram_gib: float = 0.0) -> Budget:
    *others, last = budget.device_bytes
    return replace(
        budget,
        device_bytes=(*others, last + round(vram_gib * (1 << 30))),
        ram_bytes=budget.ram_bytes + round(ram_gib * (1 << 30)),
    )


@pytest.mark.parametrize("card_gib", CARDS_GIB)
def test_every_plan_that_does_not_fit_says_the_smallest_change(zoo_header, card_gib: int) -> None:
    budget = budget_of([card_gib], RAM_GIB)
    for name in zoo.MODELS:
        found = plan(zoo_header(name), budget)
        if found.verdict == "over":
            assert found.suggestions, name
            _holds(zoo_header(name), budget, found)


def _holds(header: Header, budget: Budget, found: Plan) -> None:
    assert found.placement is not None
    placed = found.placement
    same = Override(ctx=placed.ctx_tokens, kv_k=placed.type_k, kv_v=placed.type_v, ub=placed.ubatch)
    window = number(r"Fits at ([\d,]+) tokens\.", found)
    if window is not None:
        assert plan(header, budget, replace(same, ctx=int(window))).verdict != "over"
        assert plan(header, budget, replace(same, ctx=int(window) + 4096)).verdict == "over"
    ram = number(r"([\d.,]+) GiB more RAM", found)
    if ram is not None:
        assert plan(header, with_more(budget, ram_gib=ram)).verdict != "over"
        less = with_more(budget, ram_gib=ram * 0.9 - 0.2)
        # A plan in RAM may return to the GPU.
        assert not placed.gpu_layers or plan(header, less, same).verdict == "over"
    vram = number(r"([\d.,]+) GiB more VRAM", found)
    if vram is not None:
        assert plan(header, with_more(budget, vram_gib=vram), same).verdict != "over"


@pytest.mark.parametrize("model", ["llama31-8b-q4_k_m", "gemma3-12b-q4_k_m", "mixtral-8x7b-q4_0", "qwen35-9b-q4_k_m"])
@pytest.mark.parametrize(
    "pins",
    [
        Override(custom_args="-ngl 99"),
        Override(custom_args="-ngl 99", ctx=32768, kv_k="f16", kv_v="f16"),
        Override(ctx=32768, device="cpu", kv_k="f16", kv_v="f16"),
        Override(kv_in_ram=True, ctx=32768),
    ],
)
def test_the_same_holds_beside_pins(zoo_header, model: str, pins: Override) -> None:
    header, budget = zoo_header(model), budget_of([4], 5)
    found = plan(header, budget, pins)
    if found.verdict != "over":
        pytest.skip("fits")
    assert found.suggestions, found.reasons
    assert found.placement is not None
    window = number(r"Fits at ([\d,]+) tokens\.", found)
    if window is not None:
        assert plan(header, budget, replace(pins, ctx=int(window))).verdict != "over"
    if any(text.startswith("Fits with a q8_0") for text in found.suggestions):
        ctx = found.placement.ctx_tokens
        assert plan(header, budget, replace(pins, ctx=ctx, kv_k="q8_0", kv_v="q8_0")).verdict != "over"
    if "Fits without the pinned placement." in found.suggestions:
        assert plan(header, budget, replace(pins, custom_args="")).verdict != "over"


def test_a_shorter_window_and_a_smaller_cache_together(zoo_header) -> None:
    header, budget = zoo_header("llama31-8b-q4_k_m"), budget_of([], 5)
    found = plan(header, budget, Override(ctx=65536, kv_k="f16", kv_v="f16"))
    assert found.verdict == "over"
    window = number(r"Fits at ([\d,]+) tokens with a q8_0 KV cache\.", found)
    assert window is not None
    assert plan(header, budget, Override(ctx=int(window), kv_k="q8_0", kv_v="q8_0")).verdict != "over"


def test_a_short_window_has_fewer_checkpoints(zoo_header) -> None:
    header, budget = zoo_header("gemma3-4b-q4_k_m"), budget_of([2], 2.2)
    found = plan(header, budget, Override(ctx=32768, kv_k="q8_0", kv_v="q8_0"))
    assert found.verdict == "over"
    window = number(r"Fits at ([\d,]+) tokens\.", found)
    assert window is not None
    assert plan(header, budget, Override(ctx=int(window), kv_k="q8_0", kv_v="q8_0")).verdict != "over"


@pytest.mark.parametrize(
    ("model", "card_gib", "ram_gib"),
    [("granite4-h-small-q4_k_m", 5, 24), ("ernie45-21b-a3b-q8_0", 8, 48), ("hunyuan-a13b-iq4_xs", 10, 16)],
)
def test_more_vram_is_enough_for_the_micro_batch_that_it_brings(
    zoo_header, model: str, card_gib: int, ram_gib: int
) -> None:
    """Below 12 GiB mixtures with a long window run with a micro-batch of 512, above with 1,024."""
    header, budget = zoo_header(model), budget_of([card_gib], ram_gib)
    found = plan(header, budget)
    assert found.placement is not None
    placed = found.placement
    assert placed.ubatch == 512
    same = Override(ctx=placed.ctx_tokens, kv_k=placed.type_k, kv_v=placed.type_v)
    vram = number(r"([\d.,]+) GiB more VRAM", found)
    assert vram is not None
    with_it = plan(header, with_more(budget, vram_gib=vram), same)
    assert with_it.verdict == ("spills" if found.verdict == "over" else "fits")
    assert plan(header, with_more(budget, vram_gib=vram - 0.3), same).verdict == found.verdict


@pytest.mark.parametrize("card_gib", [6, 12, 24])
@pytest.mark.parametrize("ram_gib", [6, 20])
def test_what_does_not_fit_fits_at_no_window(zoo_header, card_gib: int, ram_gib: int) -> None:
    """RAM limits the window like VRAM: a plan that nobody pinned is over only where nothing helps but more memory."""
    budget = budget_of([card_gib], ram_gib)
    for name in zoo.MODELS:
        found = plan(zoo_header(name), budget)
        assert not any(text.startswith("Fits at") and " with " not in text for text in found.suggestions), name
        if found.verdict == "over" and found.placement is not None:
            placed = found.placement
            least = Override(ctx=4096, kv_k=placed.type_k, kv_v=placed.type_v, ub=placed.ubatch)
            assert plan(zoo_header(name), budget, least).verdict == "over", name


def test_a_window_limited_by_ram_is_the_longest(zoo_header) -> None:
    header, budget = zoo_header("llama33-70b-q4_k_m"), budget_of([24], 20.9)
    found = plan(header, budget)
    assert found.verdict == "spills"
    assert found.placement is not None
    assert any("context limited by RAM budget 20.9 GiB" in reason.text for reason in found.reasons)
    longer = Override(ctx=found.placement.ctx_tokens + 4096, kv_k="q8_0", kv_v="q8_0")
    assert plan(header, budget, longer).verdict == "over"


def test_a_mixture_says_what_a_longer_window_costs(zoo_header) -> None:
    budget = budget_of([12], 32)
    found = plan(zoo_header("deepseek-v2-lite-q4_k_m"), budget)
    assert found.verdict == "fits"
    (text,) = [text for text in found.suggestions if "would fit with the experts of" in text]
    assert text == "65,536 tokens would fit with the experts of 2 of 26 layers in RAM."
    pinned = plan(zoo_header("deepseek-v2-lite-q4_k_m"), budget, Override(ctx=65536, kv_k="f16", kv_v="f16"))
    assert pinned.verdict == "spills"
    assert any("experts of 2 of 26" in reason.text for reason in pinned.reasons)


def test_no_missing_amount_reads_zero(zoo_header) -> None:
    needs = plan(zoo_header("llama31-8b-q4_k_m"), budget_of([], 64), Override(ctx=8192, kv_k="f16", kv_v="f16"))
    barely = replace(budget_of([], 1), ram_bytes=needs.est_ram_bytes - 1000)
    found = plan(zoo_header("llama31-8b-q4_k_m"), barely, Override(ctx=8192, kv_k="f16", kv_v="f16"))
    assert found.verdict == "over"
    assert "Fits with 0.1 GiB more RAM." in found.suggestions
