"""Absurd figures in settings, budgets and pins: a plan or "cannot judge", never an exception or a made-up number."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpus_app.core.budget import budget_of
from gpus_app.core.units import GIB, from_gib
from models_app.core.plans import plan_row
from models_app.core.plans.fits import fits_of
from models_app.core.settings import Override, Settings
from models_app.core.verbs.planning_run import row_of

VERDICTS = {"fits", "spills", "over", "unknown"}
ABSURD = (0.0, -1.0, math.nan, math.inf, -math.inf, 1e12, 1e30)
BUDGETS = {
    "two cards": budget_of((24.0, 12.0), 64.0),
    "one card": budget_of((24.0,), 64.0),
    "none": budget_of((), 64.0),
}
MODELS = ("qwen3-8b-q4_k_m", "qwen3-30b-a3b-q4_k_m")


@pytest.fixture(params=MODELS)
def plan(request, zoo_header):
    header = zoo_header(request.param)

    def run(budget, override=None, **settings):
        given = replace(Settings(), **settings)
        return plan_row(row_of("/m.gguf", header), header, settings=given, override=override, budget=budget)[0]

    return run


def assert_sound(plan):
    assert plan.verdict in VERDICTS
    assert plan.est_vram_bytes >= 0
    assert plan.est_ram_bytes >= 0
    if plan.verdict == "unknown":
        assert (plan.terms, plan.est_vram_bytes, plan.est_ram_bytes) == ((), 0, 0)
        assert plan.reasons[0].kind == "cannot-judge"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"head_count": 0, "key_length": 0}, "head counts or head lengths are missing"),
        ({"head_count_kv": 0}, "no block has a key-value head"),
        ({"head_count_kv": 2**32 - 1}, "a head count is absurd"),
        ({"head_count": 2**32 - 1}, "head counts or head lengths are missing"),
        ({"expert_count": 2**32 - 1}, "expert_count is absurd"),
        ({"embedding_length": 2**32 - 1}, "embedding_length is missing or absurd"),
        ({"block_count": 2**32 - 1}, "block_count is 4294967295"),
        ({"extra": {"feed_forward_length": 2**32 - 1}}, "feed_forward_length is absurd"),
    ],
)
def test_headers(zoo_header, keys, said):
    header = replace(zoo_header("qwen3-8b-q4_k_m"), **keys)
    found = plan_row(
        row_of("/m.gguf", header), header, settings=Settings(), override=None, budget=BUDGETS["two cards"]
    )[0]
    assert found.verdict == "unknown"
    assert said in found.reasons[0].text
    assert_sound(found)


@pytest.mark.parametrize("where", BUDGETS)
@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize("key", ["vram_overhead_gb", "compute_buf_factor", "vision_overhead_gb", "target_vram_gb"])
def test_settings(plan, where, key, value):
    assert_sound(plan(BUDGETS[where], **{key: value}))


@pytest.mark.parametrize("value", ABSURD)
def test_budgets(plan, value):
    assert_sound(plan(budget_of((value,), value)))
    assert_sound(plan(budget_of((8.0, value), 64.0)))
    assert_sound(plan(budget_of((8.0,), 64.0).with_ram(value)))


@pytest.mark.parametrize("where", BUDGETS)
@pytest.mark.parametrize(
    ("key", "value"),
    [("vram_target_gb", value) for value in ABSURD]
    + [
        ("ctx", -5),
        ("ctx", 1),
        ("ctx", 10**18),
        ("ctx_variants", (-1, 0, 10**12)),
        ("parallel", -1),
        ("parallel", 10**9),
    ]
    + [("cpu_offload", -4), ("cpu_offload", 10**9), ("ub", -1), ("ub", 10**9), ("main_gpu", -3), ("main_gpu", 99)]
    + [("ctx_checkpoints", -1), ("ctx_checkpoints", 10**9), ("checkpoint_min_step", -1), ("spec_draft_n_max", -1)]
    + [("kv_k", "q9"), ("kv_v", "iq4_nl"), ("split_mode", "diagonal")],
)
def test_pins(plan, where, key, value):
    assert_sound(plan(BUDGETS[where], Override(**{key: value})))


@pytest.mark.parametrize("where", BUDGETS)
@pytest.mark.parametrize(
    "text",
    [
        "-c 999999999999",
        "-c -1",
        "-c 1e9",
        "-ngl -5",
        "--n-cpu-moe -3",
        "-np 99999",
        "-ub 0",
        "-ngl 99999999999999999999",
    ],
)
def test_launch_texts(plan, where, text):
    assert_sound(plan(BUDGETS[where], Override(custom_args=text)))


@pytest.mark.parametrize("text", ["1,2,3", "1", "nan,1", "-1,2", "inf,1", "x", "0,0", ",", "1e308,1e308", "1," * 4000])
def test_a_split_that_is_none_is_not_judged(plan, zoo_header, text):
    found = plan(BUDGETS["two cards"], Override(tensor_split=text))
    assert_sound(found)
    assert found.verdict == "unknown"
    assert "is not one share of 0 or more for each of the 2 devices" in found.reasons[0].text
    typed = plan(BUDGETS["two cards"], Override(custom_args=f"-ts {text}"))
    assert_sound(typed)
    assert plan(BUDGETS["one card"], Override(tensor_split=text)).verdict == "fits"
    header = zoo_header(MODELS[0])
    asked = {"settings": Settings(), "override": Override(tensor_split=text), "budget": BUDGETS["two cards"]}
    fits = fits_of(row_of("/m.gguf", header), header, [8192], **asked)
    assert fits[8192].state == "unknown"
    assert "for each of the 2 devices" in fits[8192].reason


@pytest.mark.parametrize("text", ["2,1", "3/1", " 1 , 1 ", "none", ""])
def test_a_split_that_is_one_is_judged(plan, text):
    assert plan(BUDGETS["two cards"], Override(tensor_split=text)).verdict == "fits"


def test_sizes():
    assert [from_gib(value) for value in (math.nan, math.inf, 1e30, -math.inf)] == [0, 1 << 60, 1 << 60, -(1 << 60)]
    assert from_gib(1.5) == 3 * GIB // 2
