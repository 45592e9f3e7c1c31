"""What a person says about devices decides which of them a plan uses, and in which order (sizing.md 14.3)."""

from __future__ import annotations

import pytest

from gpus_app.core.budget import Budget, budget_for_set
from gpus_app.core.gpu_set import gpu_set
from gpus_app.core.readings import DeviceReading
from gpus_app.core.units import GIB
from models_app.core.catalog import Plan
from models_app.core.export.entry import plan_env
from models_app.core.export.groups import is_cpu_model
from models_app.core.plans import plan_row
from models_app.core.plans.launch_devices import launch_budget
from models_app.core.settings import Override, Settings
from models_app.core.verbs.planning_run import row_of

LARGE = "qwen25-32b-q4_k_m"
ORDER = "CUDA_DEVICE_ORDER=PCI_BUS_ID"
CARDS = (24, 12)
"""GiB of CUDA0 and CUDA1: the main device comes first on the bus, and last in a launch that names them."""


def budget(*, ids: tuple[str, ...] = ("CUDA0", "CUDA1"), others: bool = False) -> Budget:
    readings = [DeviceReading(n, f"card {n}", size * GIB, 0, vendor="nvidia") for n, size in enumerate(CARDS)]
    return budget_for_set(gpu_set(readings), 36, 64, backend_ids=ids, others=others)


def planned(zoo_header, budget: Budget, **own: object) -> tuple[Plan, list[int]]:
    """The base plan, and the sizes of its devices in launch order."""
    header = zoo_header(LARGE)
    override = Override(ctx=8192, **own)
    row = row_of("/m.gguf", header)
    [base, *_] = plan_row(row, header, settings=Settings(), override=override, budget=budget)
    return base, [round(size / GIB) for size in launch_budget(budget, override).device_bytes]


def words(plan: Plan, *flags: str) -> list[str]:
    argv = plan.argv
    return [f"{word} {argv[place + 1]}" for place, word in enumerate(argv) if word in flags]


@pytest.mark.parametrize("own", [{"tensor_split": "0.7,0.3"}, {"custom_args": "-ts 0.7,0.3"}])
@pytest.mark.parametrize("ids", [("CUDA0", "CUDA1"), ("Vulkan0", "Vulkan1"), ()])
def test_a_ratio_typed_by_hand_stands_in_the_backends_own_order(zoo_header, own, ids):
    plan, sizes = planned(zoo_header, budget(ids=ids), **own)
    [weights] = [term for term in plan.terms if term.key == "weights"]
    assert sizes == [24, 12]
    assert weights.device_bytes[0] > 2 * weights.device_bytes[1]
    assert (plan.verdict, words(plan, "--device", "-ts")) == ("fits", ["-ts 0.7,0.3"])
    assert words(plan, "--main-gpu") == ["--main-gpu 0"], "no list, so it is the number of the device"


def test_the_backends_own_order_need_not_be_that_of_the_bus(zoo_header):
    plan, sizes = planned(zoo_header, budget(ids=("Vulkan1", "Vulkan0")), tensor_split="0.3,0.7")
    assert (sizes, plan.verdict, words(plan, "--main-gpu")) == ([12, 24], "fits", ["--main-gpu 1"])


def test_cards_that_a_ratio_does_not_mean_are_hidden(zoo_header):
    several = budget(others=True)
    plan, _ = planned(zoo_header, several, tensor_split="0.7,0.3")
    assert plan_env(plan, launch_budget(several, Override(tensor_split="0.7,0.3"))) == [
        ORDER,
        "CUDA_VISIBLE_DEVICES=0,1",
    ]
    assert several.visible_ids == (), "where a launch names its devices none is hidden"


@pytest.mark.parametrize(
    ("text", "sizes", "verdict"),
    [
        ("--device CUDA0,CUDA1 -ts 0.7,0.3", [24, 12], "fits"),
        ("-dev CUDA1,CUDA0 -ts 0.3,0.7", [12, 24], "fits"),
        ("--device CUDA1,CUDA0 -ts 0.7,0.3", [12, 24], "spills"),
        ("--device=CUDA0", [24], "fits"),
        ("--device CUDA1", [12], "spills"),
        ("--device CUDA7", [12, 24], "fits"),
    ],
)
def test_devices_that_the_text_names_are_those_of_the_launch(zoo_header, text, sizes, verdict):
    several = budget(others=True)
    plan, found = planned(zoo_header, several, custom_args=text)
    assert (found, plan.verdict) == (sizes, verdict)
    assert not any("VISIBLE" in item for item in plan_env(plan, launch_budget(several, Override(custom_args=text))))
    assert plan_env(plan, launch_budget(several, Override(custom_args=text))) == [ORDER]
    if len(sizes) == 1:
        assert words(plan, "--main-gpu", "--tensor-split") == [], "positions in a list of one"


@pytest.mark.parametrize(
    ("text", "ids", "warned"),
    [
        ("--device CUDA7", ("CUDA0", "CUDA1"), True),
        ("--device CUDA0", (), True),
        ("--device CUDA0", ("CUDA0", "CUDA1"), False),
        ("--device none", (), False),
    ],
)
def test_devices_that_nobody_knows_are_warned_of(zoo_header, text, ids, warned):
    plan, _ = planned(zoo_header, budget(ids=ids), custom_args=text)
    assert any("does not know the devices" in warning for warning in plan.warnings) == warned
    alone, _ = planned(zoo_header, Budget(device_bytes=(24 * GIB,)), custom_args=text)
    assert not any("does not know" in warning for warning in alone.warnings), "there is only one"


@pytest.mark.parametrize("text", ["--device none", "-dev NONE", "--device=none -ngl 99"])
def test_a_text_that_keeps_off_the_gpus_is_planned_for_ram(zoo_header, text):
    """As the field does (sizing.md 12.3)."""
    by_field, _ = planned(zoo_header, budget(), device="cpu")
    by_text, _ = planned(zoo_header, budget(), custom_args=text)
    assert (by_text.est_vram_bytes, by_text.est_ram_bytes) == (0, by_field.est_ram_bytes)
    assert (by_text.verdict, by_text.placement) == (by_field.verdict, by_field.placement)
    assert sum(word.partition("=")[0] in ("--device", "-dev") for word in by_text.argv) == 1
    assert is_cpu_model(Override(custom_args=text))
    assert not is_cpu_model(Override(custom_args="--device CUDA0"))


@pytest.mark.parametrize(
    ("own", "sizes", "main"),
    [
        ({"split_mode": "none"}, [24], []),
        ({"split_mode": "none", "main_gpu": 1}, [12], ["-mg 1"]),
        ({"custom_args": "-sm none -mg 1"}, [12], ["-mg 1"]),
        ({"custom_args": "-sm none -mg 9"}, [24, 12], ["-mg 9"]),
    ],
)
def test_without_a_split_one_device_holds_everything(zoo_header, own, sizes, main):
    plan, found = planned(zoo_header, budget(), **own)
    assert found == sizes
    assert len(plan.placement.tensor_split) == (2 if len(sizes) > 1 else 0)
    assert words(plan, "-mg", "--main-gpu")[-1:] == main


@pytest.mark.parametrize("own", [{"split_mode": "none"}, {"custom_args": "--device CUDA0"}])
def test_a_target_of_the_model_is_one_of_its_only_device(zoo_header, own):
    plan, _ = planned(zoo_header, budget(), vram_target_gb=21, **own)
    assert (plan.target_bytes, plan.verdict) == (21 * GIB, "fits")


def test_the_only_device_of_a_launch_without_a_split_is_said(zoo_header):
    readings = [DeviceReading(n, f"card {n}", size * GIB, 0, vendor="nvidia") for n, size in enumerate((12, 24))]
    two = budget_for_set(gpu_set(readings), 36, 64)
    plan, sizes = planned(zoo_header, two, split_mode="none")
    assert (sizes, words(plan, "--main-gpu")) == ([24], ["--main-gpu 1"])
    own = Override(split_mode="none")
    assert plan_env(plan, launch_budget(two, own)) == [ORDER], "a number means nothing in another order"
    one = budget_for_set(gpu_set(readings[:1]), 36, 64)
    assert plan_env(planned(zoo_header, one, split_mode="none")[0], launch_budget(one, own)) == []


@pytest.mark.parametrize("own", [{"split_mode": "row"}, {"custom_args": "-sm row"}])
def test_other_ways_to_split_are_warned_of(zoo_header, own):
    plan, _ = planned(zoo_header, budget(), **own)
    assert any("--split-mode row" in warning for warning in plan.warnings)
    alone, _ = planned(zoo_header, Budget(device_bytes=(24 * GIB,)), **own)
    assert not any("--split-mode" in warning for warning in alone.warnings)
