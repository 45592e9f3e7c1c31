"""What a plan may use: starting values, seeding, the idle mark, shares of devices."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpus_app.core.budget import (
    Budget,
    auto_vram_target,
    budget_for_set,
    budget_of,
    free_budget,
    high_water,
    recommended_ram_gib,
    recommended_vram_gib,
    seed_budget,
)
from gpus_app.core.gpu_set import GpuDevice, GpuSet
from gpus_app.core.readings import DeviceReading, MachineReading, MemoryReading
from gpus_app.core.runtimes import rocm_verdict, runtime_gib, runtime_of
from gpus_app.core.units import GIB
from gpus_app.host_tasks import machine_facts
from gpus_app.selectors import get_host, ram_limit_gib
from tests.gpus.test_hosts import finish_probe


def device(index: int, total: float, free: float) -> GpuDevice:
    return GpuDevice(index, f"GPU {index}", False, False, round(total * GIB), round(free * GIB))


SMALL_AND_LARGE = GpuSet((device(0, 16, 15), device(1, 8, 8)))


class TestStartingValues:
    def test_vram_is_what_is_free(self):
        assert recommended_vram_gib(SMALL_AND_LARGE) == 23.0
        assert recommended_vram_gib(GpuSet((device(0, 8, 0.9),))) is None

    @pytest.mark.parametrize(
        ("total", "available", "used", "expected"),
        [(32, 20.37, 11, 20.3), (32, 40, 11, 21.0), (32, 0, 11, 21.0), (32, 1.5, 30.5, None)],
    )
    def test_ram_is_what_is_available(self, total, available, used, expected):
        memory = MemoryReading(round(total * GIB), round(available * GIB), round(used * GIB))
        assert recommended_ram_gib(memory) == expected

    def test_no_reading_no_recommendation(self):
        assert recommended_ram_gib(None) is None

    @pytest.mark.parametrize(("available", "proposed"), [(0, 42.0), (80, 42.0), (20, 20.0)])
    def test_a_host_says_what_its_system_really_has_available(self, host, monkeypatch, available, proposed):
        """What is used is known there alone."""
        monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **more: None)
        memory = MemoryReading(64 * GIB, available * GIB, 22 * GIB)
        finish_probe(host, **machine_facts(MachineReading((), memory)))
        assert ram_limit_gib(get_host(host.slug)) == proposed
        assert free_budget(GpuSet(), memory).ram_bytes == proposed * GIB

    def test_a_written_figure_is_the_users(self):
        assert seed_budget(7, 11.9, 7) == 7
        assert seed_budget(0, 11.9, 7) == 0
        assert seed_budget(None, 11.9, 7) == 11.9
        assert seed_budget(None, None, 24) == 24

    def test_the_idle_mark(self):
        assert list(high_water([21.9, 2.6, 23.4])) == [21.9, 21.9, 23.4]
        assert list(high_water([2.6], 20)) == [20]
        assert auto_vram_target(12, 20.1) == 12
        assert auto_vram_target(24, 20.1) == 20.1
        assert auto_vram_target(12, 0.4) == 12


class TestBudget:
    def test_figures_that_are_no_size(self):
        assert budget_of([0, -1, math.nan]).device_bytes == ()
        assert budget_of([1e12]).device_bytes[0] == 1 << 60
        assert budget_of([8], math.nan).ram_bytes == 0

    def test_the_main_device_is_last_where_the_backend_can_be_told(self):
        budget = budget_for_set(SMALL_AND_LARGE, 20, 32, backend_ids=("CUDA0", "CUDA1"))
        assert budget.backend_ids == ("CUDA1", "CUDA0")
        assert budget.main_gpu == 1
        assert budget.device_bytes[1] > budget.device_bytes[0]

    def test_else_the_order_is_that_of_the_bus(self):
        budget = budget_for_set(SMALL_AND_LARGE, 20, 32)
        assert budget.backend_ids == ()
        assert budget.main_gpu == 0
        assert budget.device_names == ("GPU 0", "GPU 1")

    def test_no_target_no_device(self):
        assert budget_for_set(SMALL_AND_LARGE, 0, 32).device_bytes == ()

    def test_what_is_free_now(self):
        memory = MemoryReading(32 * GIB, 20 * GIB)
        budget = free_budget(SMALL_AND_LARGE, memory)
        assert budget.device_bytes == (15 * GIB, 8 * GIB)
        assert budget.ram_bytes == 20 * GIB
        assert free_budget(GpuSet(), None) == Budget()

    def test_without_devices(self):
        budget = budget_of([8, 8], 32).without_devices()
        assert (budget.device_bytes, budget.ram_bytes) == ((), 32 * GIB)

    @given(st.lists(st.floats(0.5, 80), min_size=1, max_size=4), st.floats(0.5, 400))
    def test_another_target_is_shared_in_the_same_proportion(self, sizes, target):
        budget = budget_of(sizes)
        other = budget.with_target(round(target * GIB))
        assert abs(other.target_bytes - round(target * GIB)) <= len(sizes)
        for before, after in zip(budget.device_bytes, other.device_bytes, strict=True):
            assert after / other.target_bytes == pytest.approx(before / budget.target_bytes, abs=1e-6)

    def test_no_device_is_asked_for_more_than_it_has(self):
        budget = budget_for_set(SMALL_AND_LARGE, 40, 0)
        assert budget.device_bytes == (16 * GIB, 8 * GIB)


class TestRuntime:
    @pytest.mark.parametrize(
        ("path", "verdict"),
        [
            (r"C:\llama\rocm-7\llama-server.exe", "rocm"),
            ("/opt/llama.hip/llama-server", "rocm"),
            ("/opt/llama-cuda/llama-server", "not_rocm"),
            ("/usr/bin/llama-server", "keep"),
        ],
    )
    def test_rocm_by_the_path_of_the_backend(self, path, verdict):
        assert rocm_verdict(path) == verdict

    def test_the_largest_device_decides(self):
        card = DeviceReading(0, "NVIDIA GeForce RTX 3060", 12 * GIB)
        apu = DeviceReading(1, "AMD Radeon 780M", 18 * GIB)
        assert runtime_of([]) == "cuda"
        assert runtime_of([card]) == "cuda"
        assert runtime_of([card, apu]) == "vulkan"
        assert runtime_of([apu], "/opt/rocm/llama-server") == "rocm"

    def test_costs(self):
        assert [runtime_gib(name) for name in ("cuda", "vulkan", "rocm", "sycl")] == [0.3, 0.4, 0.8, 0.4]
