"""Which devices count, and how layers are shared among them."""

from __future__ import annotations

import pytest

from gpus_app.core.budget import machine_budget
from gpus_app.core.gpu_set import DevicePolicy, GpuDevice, GpuSet, describe, exclusion, fold, gpu_set
from gpus_app.core.readings import DeviceReading
from gpus_app.core.split import (
    extra_device_gib,
    format_split,
    live_split,
    main_last_order,
    permute_split,
    plan_split,
    split_ratio,
)
from gpus_app.core.units import GIB, MIB


def reading(
    name: str, total: int, used: int = 0, shared: int = 0, shared_used: int = 0, **more: object
) -> DeviceReading:
    """A device in MiB."""
    given = {"index": 0, **more}
    return DeviceReading(
        name=name,
        total_bytes=total * MIB,
        used_bytes=used * MIB,
        shared_total_bytes=shared * MIB,
        shared_used_bytes=shared_used * MIB,
        **given,  # type: ignore[arg-type]
    )


APU = reading("AMD Radeon 780M Graphics", 2048, 256, 16384, 2048)
CARD = reading("NVIDIA GeForce RTX 4070 Ti SUPER", 16384, 4096, index=1)
XTX = reading("AMD Radeon RX 7900 XTX", 24576, 0, 16384)


def one(readings: list[DeviceReading], **policy: object) -> GpuDevice:
    devices = gpu_set(readings, DevicePolicy(**policy)).devices  # type: ignore[arg-type]
    assert len(devices) == 1
    return devices[0]


class TestEligibility:
    def test_the_pool_of_an_apu_counts(self):
        device = one([APU])
        assert device.integrated
        assert (device.total_bytes, device.free_bytes) == (18 * GIB, 15.75 * GIB)
        assert device.shared_free_bytes == 14 * GIB

    def test_without_its_pool_an_apu_is_too_small(self):
        assert gpu_set([APU], DevicePolicy(shared_memory="off")) == GpuSet()

    def test_a_card_does_not_borrow(self):
        device = one([XTX])
        assert not device.integrated
        assert (device.total_bytes, device.shared_total_bytes, device.shared_free_bytes) == (24 * GIB, 16 * GIB, 0)
        assert one([XTX], shared_memory="on").total_bytes == 40 * GIB
        assert one([XTX], shared_memory="unheard of").total_bytes == 24 * GIB

    @pytest.mark.parametrize(
        ("device", "integrated"),
        [
            (reading("AMD Radeon RX 6600", 8192, 0, 16384), False),
            (reading("AMD Ryzen 7 7840U w/ 780M", 8192, 0, 16384), True),
            (reading("amdgpu [1002:15bf]", 4096, 0, 16384), True),
            (reading("amdgpu [1002:1586]", 16384, 0, 40960, integrated=True), True),
            (reading("AMD Radeon Graphics", 4096, 0, 16384, integrated=False), False),
            (reading("AMD Radeon Graphics", 4096), False),
        ],
    )
    def test_what_is_integrated(self, device, integrated):
        assert one([device]).integrated is integrated

    def test_an_apu_beside_a_card_is_left_out(self):
        assert one([APU, CARD]).name == CARD.name
        both = gpu_set([APU, CARD], DevicePolicy(pool_integrated=True))
        assert both.free_bytes == 27.75 * GIB

    def test_newest_reading_floor_and_empty_devices(self):
        found = gpu_set(
            [
                reading("b", 16384, 8000, index=1, sample=1),
                reading("b", 16384, 4096, index=1, sample=2),
                reading("a", 12288, 1024),
                reading("c", 2048, index=2),
                reading("d", 0, index=3),
            ]
        )
        assert [device.index for device in found.devices] == [0, 1]
        assert (found.total_bytes, found.free_bytes, found.live_main) == (28 * GIB, 23 * GIB, 1)

    def test_more_used_than_there_is(self):
        assert one([reading("a", 8192, 9000)]).free_bytes == 0

    def test_a_single_device_is_the_one_to_plan_for(self):
        busy = reading("big", 24576, 20000, index=5)
        assert one([CARD, busy], multi_gpu=False).name == "big"

    def test_no_device(self):
        found = gpu_set([])
        assert (len(found), found.live_main, found.plan_main, found.free_bytes) == (0, None, None, 0)


class TestReport:
    def test_counted(self):
        text = describe([APU])
        for part in ("integrated", "counted", "18.0 GB usable", "eligible budget (multi): 18.0 GB total, 15.8 GB free"):
            assert part in text

    def test_dropped(self):
        text = describe([APU], DevicePolicy(shared_memory="off"))
        for part in ("not counted", "DROPPED (under the 3.0 GB floor)", "no GPU counts"):
            assert part in text

    def test_excluded(self):
        assert "EXCLUDED (integrated GPU beside a dedicated one)" in describe([APU, CARD])
        assert "EXCLUDED (multi-GPU is off)" in describe([XTX, CARD], DevicePolicy(multi_gpu=False))


def devices(*sizes: tuple[float, float]) -> GpuSet:
    """Devices of (total, free) GiB."""
    return GpuSet(
        tuple(
            GpuDevice(index, "", False, False, round(total * GIB), round(free * GIB))
            for index, (total, free) in enumerate(sizes)
        )
    )


class TestSplit:
    @pytest.mark.parametrize(
        ("free", "main", "fixed", "split"),
        [
            ((11, 15), 1, 2, (0.45, 0.55)),
            ((0.5, 10), 1, 10, (1, 0)),
            ((0, 2), 1, 4, ()),
            ((12,), 0, 1, ()),
        ],
    )
    def test_by_what_is_free(self, free, main, fixed, split):
        assert split_ratio(free, main, fixed, 0.4) == split

    def test_a_plan_goes_by_capacity(self):
        busy = devices((12, 11), (16, 1))
        assert (busy.live_main, busy.plan_main) == (0, 1)
        assert plan_split(busy, 2, "vulkan") == (0.48, 0.52)

    def test_without_room_the_totals_decide(self):
        tiny = devices((0.3, 0), (0.3, 0))
        assert live_split(tiny, 5, "vulkan") == ()
        assert plan_split(tiny, 5, "vulkan") == (0.5, 0.5)

    def test_further_devices_cost_their_runtime(self):
        assert [extra_device_gib(2, "cuda"), extra_device_gib(3, "rocm"), extra_device_gib(1, "cuda")] == [0.3, 1.6, 0]

    def test_the_main_device_goes_last(self):
        assert main_last_order([0, 3, 7], 3) == (0, 2, 1)
        assert main_last_order([0, 3, 7], 7) == (0, 1, 2)
        assert main_last_order([0, 3, 7], 9) == ()

    def test_the_ratio_goes_with_the_order(self):
        assert permute_split((0.2, 0.3, 0.5), (0, 2, 1)) == (0.2, 0.5, 0.3)
        assert permute_split((0.2, 0.8), (0, 2, 1)) == (0.2, 0.8)
        assert format_split((0.45, 0.55)) == "0.45,0.55"
        assert format_split((1, 0)) == "1,0"


def test_an_integrated_device_that_another_one_displaced_is_beside_no_card():
    readings = [DeviceReading(n, "AMD Radeon Graphics", 4 * GIB, 0, 12 * GIB, 0, integrated=True) for n in (0, 1)]
    policy = DevicePolicy(multi_gpu=False)
    assert [device.index for device in gpu_set(readings, policy).devices] == [0]
    assert exclusion(fold(readings[1], policy), policy, gpu_set(readings, policy)) == "planning uses one card only"
    assert "EXCLUDED (multi-GPU is off)" in describe(readings, policy)


def test_of_instances_of_a_card_one_is_used():
    """A CUDA process sees whole cards, or the first MIG instance; several instances are no sum."""
    instances = [reading("A100 MIG 3g.20gb", 20480, index=64 + slot, uuid=f"MIG-{slot}") for slot in range(2)]
    assert [device.index for device in gpu_set(instances).devices] == [64]
    whole = reading("A100", 40960, index=1, uuid="GPU-1")
    kept = gpu_set([*instances, whole])
    assert [device.index for device in kept.devices] == [1]
    assert machine_budget(kept, [*instances, whole], 30.0, 0.0).visible_ids == ()
    assert "first instance alone" in exclusion(fold(instances[1], DevicePolicy()), DevicePolicy(), gpu_set(instances))
