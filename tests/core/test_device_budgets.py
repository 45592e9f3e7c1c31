"""A plan never takes more of any single device than its budget, and budgets are never more than the devices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpus_app.core.budget import Budget, budget_for_set
from gpus_app.core.gpu_set import DevicePolicy, describe, exclusion, fold, gpu_set
from gpus_app.core.readings import DeviceReading
from gpus_app.core.units import GIB, MIB
from models_app.core.catalog import Plan
from models_app.core.plans import plan_row
from models_app.core.settings import Override, Settings
from models_app.core.verbs.planning_run import row_of
from tests.core.search_cases import MODELS

LARGE = "qwen25-32b-q4_k_m"
CARDS_MIB = (2048, 4096, 8192, 12288, 16376, 24564, 49140, 81920)


@st.composite
def machines(draw):
    """One to four uneven cards, partly in use, with reserves and a policy."""
    totals = draw(st.lists(st.sampled_from(CARDS_MIB), min_size=1, max_size=4))
    readings = [
        DeviceReading(index, f"Card {index}", total * MIB, int(total * MIB * draw(st.floats(0, 1))))
        for index, total in enumerate(totals)
    ]
    reserves = {index: draw(st.sampled_from((0.0, 0.5, 2.0, 100.0))) for index in range(len(totals))}
    words = st.sampled_from(("", "", "first", "last", "never"))
    policy = DevicePolicy(
        min_vram_gib=draw(st.sampled_from((0.0, 3.0, 10.0))),
        multi_gpu=draw(st.booleans()),
        reserve_gib=reserves,
        preference={index: draw(words) for index in range(len(totals))},
    )
    return readings, policy


@st.composite
def wishes(draw):
    """What a person may have pinned."""
    return Override(
        ctx=draw(st.sampled_from((0, 0, 4096, 32768, 131072))),
        parallel=draw(st.sampled_from((0, 1, 4))),
        kv_k=draw(st.sampled_from(("", "q8_0"))),
        cpu_offload=draw(st.sampled_from((0, 0, 5))),
        vram_target_gb=draw(st.sampled_from((0.0, 0.0, 10.0, 1000.0))),
    )


@settings(max_examples=120, deadline=None)
@given(machines(), wishes(), st.sampled_from(MODELS), st.floats(0.1, 2), st.booleans(), st.sampled_from((0, 16, 64)))
def test_no_device_is_ever_overbooked(zoo_header, machine, override, model, share, named, ram_gib):
    readings, policy = machine
    devices = gpu_set(readings, policy)
    ids = tuple(f"CUDA{device.index}" for device in devices.devices) if named else ()
    budget = budget_for_set(devices, devices.total_bytes / GIB * share, ram_gib, backend_ids=ids)
    for size, most in zip(budget.device_bytes, budget.capacity_bytes, strict=True):
        assert 0 < size <= most
    header = zoo_header(model)
    [base, *_] = plan_row(row_of("/m.gguf", header), header, settings=Settings(), override=override, budget=budget)
    own = budget.with_target(int(override.vram_target_gb * GIB)) if override.vram_target_gb else budget
    held = [sum(term.device_bytes[i] for term in base.terms if term.device_bytes) for i in range(len(own.device_bytes))]
    ram = sum(term.ram_bytes for term in base.terms)
    fits = all(size <= most for size, most in zip(held, own.device_bytes, strict=True))
    fits = fits and (not own.ram_bytes or ram <= own.ram_bytes)
    assert fits == (base.verdict != "over"), (held, own.device_bytes, ram, own.ram_bytes)
    assert sum(held) == base.est_vram_bytes


@settings(max_examples=200, deadline=None)
@given(machines(), st.floats(0.01, 300))
def test_a_target_is_used_up_as_far_as_the_devices_go(machine, target_gib):
    readings, policy = machine
    devices = gpu_set(readings, policy)
    budget = budget_for_set(devices, target_gib, 0)
    if not devices.devices:
        assert budget.device_bytes == ()
        return
    reachable = min(int(target_gib * GIB), devices.total_bytes)
    assert reachable - len(devices) <= budget.target_bytes <= reachable


def two_cards(target_gib: float, ids: tuple[str, ...] = ("CUDA0", "CUDA1"), **preference: str) -> Budget:
    """Cards of 24 and 12 GiB; `gpu1="first"` is what is set for the second one."""
    readings = [DeviceReading(0, "large", 24 * GIB, 0), DeviceReading(1, "small", 12 * GIB, 0)]
    policy = DevicePolicy(preference={int(key[-1]): word for key, word in preference.items()})
    return budget_for_set(gpu_set(readings, policy), target_gib, 64, backend_ids=ids)


def test_the_preferred_card_is_the_main_one_and_gets_most_of_a_target():
    plain = two_cards(18)
    assert (plain.backend_ids, plain.device_bytes, plain.ranks) == (("CUDA1", "CUDA0"), (6 * GIB, 12 * GIB), ())
    first = two_cards(18, gpu1="first")
    assert (first.backend_ids, first.device_bytes, first.main_gpu) == (("CUDA0", "CUDA1"), (6 * GIB, 12 * GIB), 1)
    last = two_cards(18, gpu1="last")
    assert (last.backend_ids, last.device_bytes) == (("CUDA1", "CUDA0"), (2 * GIB, 16 * GIB))
    assert last.with_target(6 * GIB).device_bytes == (2 * GIB, 4 * GIB)
    assert last.with_target(36 * GIB).device_bytes == (12 * GIB, 24 * GIB)
    assert last.with_target(3 * GIB).device_bytes[0] < GIB, "too little for all: shared by size"


def test_without_names_of_the_cards_a_target_is_shared_by_size():
    budget = two_cards(18, ids=(), gpu0="first")
    assert (budget.device_bytes, budget.main_gpu, budget.ranks) == ((12 * GIB, 6 * GIB), 0, (0, 1))


def test_programs_with_one_device_get_the_preferred_one():
    assert two_cards(36).by_preference == (1, 0)
    assert [two_cards(36, gpu1="first").backend_ids[n] for n in two_cards(36, gpu1="first").by_preference] == [
        "CUDA1",
        "CUDA0",
    ]


def planned(zoo_header, model: str, budget: Budget) -> Plan:
    header = zoo_header(model)
    [base, *_] = plan_row(
        row_of("/m.gguf", header), header, settings=Settings(), override=Override(ctx=8192), budget=budget
    )
    return base


def reason_of(plan: Plan) -> str:
    return next(reason.text for reason in plan.reasons if reason.kind.startswith("split"))


@pytest.mark.parametrize(("word", "idle"), [("first", 0), ("last", 1)])
def test_a_model_that_fits_on_the_preferred_card_lies_there_alone(zoo_header, word, idle):
    budget = two_cards(36, gpu1=word)
    plan = planned(zoo_header, "llama31-8b-q4_k_m", budget)
    [weights] = [term for term in plan.terms if term.key == "weights"]
    quiet = budget.backend_ids.index(f"CUDA{idle}")
    assert [size > 0 for size in weights.device_bytes] == [place != quiet for place in (0, 1)]
    assert plan.placement.tensor_split[quiet] == 0
    assert f"no layer lies on GPU {idle}" in reason_of(plan)
    assert plan.verdict == "fits"
    assert planned(zoo_header, "llama31-8b-q4_k_m", two_cards(36)).placement.tensor_split != plan.placement.tensor_split


def test_a_model_that_does_not_fit_there_lies_on_all(zoo_header):
    plan = planned(zoo_header, LARGE, two_cards(36, gpu1="first"))
    assert 0 not in plan.placement.tensor_split
    assert "do not hold it alone" in reason_of(plan)
    plain = planned(zoo_header, LARGE, two_cards(36))
    assert plan.placement.ctx_tokens == plain.placement.ctx_tokens, "nothing is made smaller to spare a card"


def test_a_card_that_is_never_used_does_not_count():
    readings = [DeviceReading(0, "large", 24 * GIB, 0), DeviceReading(1, "small", 12 * GIB, 0)]
    policy = DevicePolicy(preference={0: "never"})
    assert [device.index for device in gpu_set(readings, policy).devices] == [1]
    assert exclusion(fold(readings[0], policy), policy, gpu_set(readings, policy)) == "set to be never used"
    assert "EXCLUDED (set to be never used)" in describe(readings, policy)
    single = DevicePolicy(multi_gpu=False, preference={1: "first"})
    assert [device.index for device in gpu_set(readings, single).devices] == [1]


def test_an_instance_of_a_card_is_not_replaced_by_the_next():
    readings = [DeviceReading(n, f"MIG {n}", 24 * GIB, uuid=f"MIG-{n}") for n in (0, 1)]
    assert gpu_set(readings, DevicePolicy(preference={0: "never"})).devices == ()
