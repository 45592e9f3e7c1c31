"""The rules that are applied again when a launch is about to start."""

from __future__ import annotations

import pytest

from gpus_app.core.gpu_set import GpuDevice, GpuSet
from gpus_app.core.guard import (
    gpu_fraction,
    guard_cheap_cases,
    live_budget_gib,
    moe_gpu_fraction,
    refuse_launch,
    retune_split,
    watchdog_ceiling_gib,
)
from gpus_app.core.units import GIB


def devices(*free: float, total: float = 16) -> GpuSet:
    return GpuSet(
        tuple(
            GpuDevice(index, "", False, False, round(total * GIB), round(size * GIB)) for index, size in enumerate(free)
        )
    )


def test_live_budget():
    assert [live_budget_gib(20.5, 22.5), live_budget_gib(22.8, 18), live_budget_gib(0, 12)] == [20.5, 18, 12]
    assert live_budget_gib(5, 0) == 5


@pytest.mark.parametrize(
    ("layers", "blocks", "fraction"), [(99, 40, 1), (20, 40, 0.5), (0, 40, 0), (-1, 40, 0), (10, 0, 1)]
)
def test_fraction_of_a_dense_model(layers, blocks, fraction):
    assert gpu_fraction(blocks, layers) == fraction


def test_fraction_of_a_mixture():
    assert moe_gpu_fraction(48, 60, 0.9) == pytest.approx(0.1)
    assert moe_gpu_fraction(48, 24, 0.9) == pytest.approx(0.55)
    assert moe_gpu_fraction(0, 24, 0.9) == 1


def test_a_launch_is_refused_only_when_it_got_worse():
    assert refuse_launch(0.8, 0.3, 0.5)
    assert not refuse_launch(0.4, 0.3, 0.5)
    assert not refuse_launch(0.8, 0.5, 0.5)
    assert not refuse_launch(0.8, 0.0, -1)


def test_watchdog():
    assert watchdog_ceiling_gib(22, 0, 1) == 22
    assert watchdog_ceiling_gib(22, 3, 1) == 18
    assert watchdog_ceiling_gib(22, 3, -5) == 19
    assert watchdog_ceiling_gib(2, 30, 1) == 0


@pytest.mark.parametrize(("free", "cap"), [(5.5, "4.5"), (8.0, "6.5"), (1.2, "0.5")])
def test_max_vram(free, cap):
    given = ["sd-server", "--max-vram", "6.5"]
    assert guard_cheap_cases(given, free) == ["sd-server", "--max-vram", cap]
    assert given[2] == "6.5"


def test_what_is_left_alone():
    for argv in (["sd-server", "--max-vram", "much"], ["llama-server", "-m", "a.gguf"], ["sd-server", "--max-vram"]):
        assert guard_cheap_cases(argv, 1) == argv
    assert guard_cheap_cases(["sam", "-m", "a.ggml"], None) == ["sam", "-m", "a.ggml"]


def test_an_old_model_file_stays_off_the_gpu():
    assert guard_cheap_cases(["sam", "-m", "a.ggml"], 8) == ["sam", "-m", "a.ggml", "--no-gpu"]


ARGV = ["-ngl", "99", "--main-gpu", "0", "--tensor-split", "0.5,0.5"]
WITH_LIST = ["-ngl", "99", "--device", "CUDA0,CUDA1", "--main-gpu", "1", "--tensor-split", "0.45,0.55"]


def test_the_ratio_follows_what_is_free():
    tuned = retune_split(ARGV, devices(1, 15), main_fixed_gib=5, runtime="vulkan")
    assert tuned == ["-ngl", "99", "--main-gpu", "1", "--tensor-split", "0.06,0.94"]


def test_a_list_is_renewed_with_its_ratio():
    tuned = retune_split(WITH_LIST, devices(15, 3), main_fixed_gib=5, runtime="cuda", backend_ids=("CUDA0", "CUDA1"))
    assert tuned == ["-ngl", "99", "--device", "CUDA1,CUDA0", "--main-gpu", "1", "--tensor-split", "0.21,0.79"]


def test_a_list_that_cannot_be_renewed_is_left_alone():
    assert retune_split(WITH_LIST, devices(1, 15), main_fixed_gib=5, runtime="cuda") == WITH_LIST


def test_no_reading_no_change():
    assert retune_split(ARGV, None, main_fixed_gib=0, runtime="cuda") == ARGV
    assert retune_split(ARGV, GpuSet(), main_fixed_gib=0, runtime="cuda") == ARGV
    assert retune_split(["-ngl", "99"], devices(1, 15), main_fixed_gib=0, runtime="cuda") == ["-ngl", "99"]
