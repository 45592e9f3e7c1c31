"""A plan never takes more of any single device than its budget, and budgets are never more than the devices."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpus_app.core.budget import budget_for_set
from gpus_app.core.gpu_set import DevicePolicy, gpu_set
from gpus_app.core.readings import DeviceReading
from gpus_app.core.units import GIB, MIB
from models_app.core.plans import plan_row
from models_app.core.settings import Override, Settings
from models_app.core.verbs.planning_run import row_of
from tests.core.search_cases import MODELS

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
    policy = DevicePolicy(
        min_vram_gib=draw(st.sampled_from((0.0, 3.0, 10.0))), multi_gpu=draw(st.booleans()), reserve_gib=reserves
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
