"""Which devices planning uses and how much of each, over what nvidia-smi said of one, two and four uneven cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpus_app import selectors
from gpus_app.core.budget import budget_for_set
from gpus_app.core.gpu_set import DevicePolicy, gpu_set
from gpus_app.core.probes.nvidia_smi import reading_of_row, snapshots
from gpus_app.core.units import GIB, MIB
from gpus_app.models import Device, HostSetting
from gpus_app.services import save_device_settings, save_memory_settings
from models_app.core.export.environment import entry_env
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job
from tests.gpus.test_hosts import finish_probe

RECORDED = Path(__file__).parent.parent / "data" / "nvidia-smi"


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


def recorded(name):
    [rows] = snapshots((RECORDED / f"{name}.csv").read_text().splitlines())
    return [reading_of_row(row) for row in rows]


def probe(host, name, **used_mib):
    """A probe that finds these cards; `gpu1=5000` is what is in use on the second one."""
    devices = []
    for reading in recorded(name):
        used = used_mib.get(f"gpu{reading.index}", reading.used_bytes // MIB) * MIB
        keys = ("index", "name", "vendor", "uuid", "total_bytes")
        devices.append({key: getattr(reading, key) for key in keys} | {"used_bytes": used})
    return finish_probe(host, devices=devices)


@pytest.fixture
def fresh(host):
    return lambda: selectors.get_host(host.slug)


@pytest.fixture
def save(host, actor):
    def run(version=0, **values):
        return save_device_settings(host=host, values=values, version=version, actor=actor)

    return run


@pytest.mark.parametrize(("name", "target_gib", "count"), [("one", 23.5, 1), ("two", 35.1, 2), ("four", 99.9, 3)])
def test_the_proposed_target_is_what_is_free_on_the_cards_that_count(host, fresh, name, target_gib, count):
    probe(host, name)
    assert selectors.target_vram_gib(fresh()) == target_gib
    budget = selectors.host_budget(fresh())
    assert len(budget.device_bytes) == count
    assert budget.target_bytes == pytest.approx(target_gib * GIB, abs=4)
    assert all(share <= total for share, total in zip(budget.device_bytes, budget.capacity_bytes, strict=True))


def test_a_small_card_is_left_out_with_the_reason(host, fresh):
    probe(host, "four")
    assert [device.eligible for device in fresh().devices.all()] == [False, True, True, True]
    assert fresh().devices.first().eligible_reason == "has less than 3 GiB to use"


def test_a_busy_card_still_counts_for_later(host, fresh):
    """The third card is nearly full now; plans are for when it is not."""
    probe(host, "four")
    shares = dict(zip(("A100", "3090", "A4000"), selectors.host_budget(fresh()).device_bytes, strict=True))
    assert shares["3090"] > shares["A4000"]


def test_what_one_card_cannot_take_goes_to_the_others():
    """All of the pooled memory is asked for: every card is filled, none beyond itself."""
    devices = gpu_set(recorded("four"))
    budget = budget_for_set(devices, devices.total_bytes / GIB, 64)
    assert budget.device_bytes == budget.capacity_bytes
    assert budget_for_set(devices, 1000, 64).device_bytes == budget.capacity_bytes
    most = devices.total_bytes / GIB - 1
    assert budget_for_set(devices, most, 64).target_bytes == pytest.approx(most * GIB, abs=4)


class TestPolicy:
    def test_one_card_only_is_the_largest(self, host, fresh, save):
        probe(host, "two")
        save(multiGpu=False)
        assert [device.eligible for device in fresh().devices.all()] == [False, True]
        assert "one card only" in fresh().devices.first().eligible_reason
        budget = selectors.host_budget(fresh())
        assert (budget.device_names, budget.main_gpu) == (("NVIDIA GeForce RTX 4090",), 1)
        assert selectors.target_vram_gib(fresh()) == 23.9

    def test_the_one_card_is_the_same_while_models_are_loaded(self, host, fresh, save):
        cards = [{"index": n, "name": f"Card {n}", "total_bytes": size * GIB} for n, size in ((0, 24), (1, 22))]
        finish_probe(host, devices=cards)
        save(multiGpu=False)
        Device.objects.filter(index=0).update(free_bytes=3 * GIB)
        shown = selectors.memory_settings(fresh())
        assert (shown.target_in_use_gib, shown.capacity_gib, shown.free_gib, shown.device_count) == (24, 24, 3, 1)

    def test_the_floor(self, host, fresh, save):
        probe(host, "four")
        save(minGpuVramGB=0)
        assert all(device.eligible for device in fresh().devices.all())
        save(version=1, minGpuVramGB=20)
        assert [device.index for device in fresh().devices.all() if device.eligible] == [1, 2]

    def test_a_reserve_is_never_planned_with(self, host, fresh, save):
        probe(host, "two")
        save(deviceReserveGB={"1": 8})
        budget = selectors.host_budget(fresh())
        assert budget.capacity_bytes[1] == 24564 * MIB - 8 * GIB
        save_memory_settings(
            host=host,
            values={"targetVramGB": 36},
            version=0,
            actor=Actor(user=AuditEntry.objects.first().user, name="admin"),
        )
        assert selectors.host_budget(fresh()).device_bytes[1] <= 24564 * MIB - 8 * GIB

    def test_what_others_use_is_part_of_the_reserve(self):
        reading = recorded("one")[0]
        for reserve, free_mib in ((0, 24576 - 412), (0.25, 24576 - 412), (2, 24576 - 2048)):
            [device] = gpu_set([reading], DevicePolicy(reserve_gib={0: reserve})).devices
            assert device.free_bytes == free_mib * MIB

    def test_a_card_that_is_reserved_whole_does_not_count(self, host, fresh, save):
        probe(host, "two")
        save(deviceReserveGB={"0": 12})
        assert [device.eligible for device in fresh().devices.all()] == [False, True]
        assert fresh().devices.first().eligible_reason == "has less than 3 GiB to use, 12 GiB of it reserved"

    def test_the_order_of_cards(self, host, fresh, save):
        probe(host, "two")
        save(devicePreference={"0": "first"})
        budget = selectors.host_budget(fresh())
        assert (budget.main_gpu, budget.ranks) == (0, (0, 1))
        save(version=1, devicePreference={"0": "never"})
        assert [device.eligible for device in fresh().devices.all()] == [False, True]
        assert fresh().devices.first().eligible_reason == "set to be never used"
        save(version=2, devicePreference={"0": "first"}, multiGpu=False)
        assert [device.eligible for device in fresh().devices.all()] == [True, False]


class TestIdleMark:
    def test_a_probe_while_models_are_loaded_does_not_shrink_the_budget(self, host, fresh):
        probe(host, "two")
        before = selectors.host_budget(fresh())
        probe(host, "two", gpu0=11000, gpu1=24000)
        assert selectors.target_vram_gib(fresh()) == 35.1
        assert selectors.host_budget(fresh()) == before
        assert fresh().devices.last().free_bytes == 564 * MIB

    def test_the_mark_rises_with_what_becomes_free(self, host, fresh):
        probe(host, "one", gpu0=12000)
        probe(host, "one")
        assert selectors.target_vram_gib(fresh()) == 23.5

    def test_another_card_has_its_own_mark(self, host, fresh):
        probe(host, "two")
        probe(host, "one")
        assert Device.objects.get().free_mark_bytes == (24576 - 412) * MIB
        assert selectors.target_vram_gib(fresh()) == 23.5

    def test_following_it_caps_a_typed_target(self, host, fresh, actor):
        probe(host, "one")
        save_memory_settings(host=host, values={"targetVramGB": 24, "autoVram": True}, version=0, actor=actor)
        assert selectors.target_vram_gib(fresh()) == pytest.approx((24576 - 412) / 1024)
        save_memory_settings(host=host, values={"targetVramGB": 12, "autoVram": True}, version=1, actor=actor)
        assert selectors.target_vram_gib(fresh()) == 12


class TestSaving:
    def test_a_default_is_stored_as_absent(self, save):
        assert save(multiGpu=True, minGpuVramGB=3, sharedMemory="auto", deviceReserveGB={"0": 0}).values == {}
        assert not Job.objects.exists()

    def test_a_change_is_versioned_noted_and_planned(self, save):
        row = save(minGpuVramGB=0, deviceReserveGB={"0": 1.5})
        assert (row.values, row.version) == ({"minGpuVramGB": 0.0, "deviceReserveGB": {"0": 1.5}}, 1)
        assert AuditEntry.objects.get(action="settings.gpu").changes["minGpuVramGB"] == [None, 0.0]
        assert Job.objects.get().kind == "plan_host"

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("minGpuVramGB", -1),
            ("minGpuVramGB", float("nan")),
            ("minGpuVramGB", 1e12),
            ("minGpuVramGB", "3"),
            ("sharedMemory", "maybe"),
            ("deviceReserveGB", {"0": -1}),
            ("deviceReserveGB", {"0": float("inf")}),
            ("deviceReserveGB", {"x": 1}),
            ("deviceReserveGB", [1]),
            ("devicePreference", {"0": "best"}),
            ("devicePreference", {"x": "first"}),
            ("nonsense", 1),
        ],
    )
    def test_other_values_are_refused_by_field(self, save, key, value):
        with pytest.raises(Refused) as refused:
            save(**{key: value})
        assert list(refused.value.fields) == [key]
        assert not HostSetting.objects.exists()

    def test_of_two_the_second_is_asked(self, save):
        save(multiGpu=False)
        with pytest.raises(EditConflict):
            save(minGpuVramGB=1)

    def test_who_may(self, host, make_user):
        with pytest.raises(NotAllowed):
            save_device_settings(host=host, values={}, version=0, actor=Actor(user=make_user("operator"), name="o"))


def test_the_runtime_is_that_of_the_largest_device(host, fresh):
    """A Vulkan process costs more on each device than a CUDA one."""
    probe(host, "two")
    assert selectors.host_budget(fresh()).runtime == "cuda"
    finish_probe(
        host, devices=[{"index": 0, "name": "AMD Radeon RX 7900 XTX", "total_bytes": 24 * GIB, "vendor": "amd"}]
    )
    assert selectors.host_budget(fresh()).runtime == "vulkan"


class TestOthers:
    """A server shares layers among all cards that it sees, so it must not see those that are not planned with."""

    def test_cards_that_do_not_count_are_hidden(self, host, fresh):
        probe(host, "four")
        budget = selectors.host_budget(fresh())
        assert budget.visible_ids == (1, 2, 3)
        assert (budget.main_gpu, budget.launch_main) == (1, 0)

    def test_one_of_two(self, host, fresh, save):
        probe(host, "two")
        assert selectors.host_budget(fresh()).visible_ids == ()
        save(multiGpu=False)
        assert selectors.host_budget(fresh()).visible_ids == (1,)

    def test_only_where_the_driver_numbers_them(self, host, fresh):
        finish_probe(
            host,
            devices=[
                {"index": 0, "name": "A", "total_bytes": 24 * GIB, "vendor": "amd"},
                {"index": 1, "name": "B", "total_bytes": GIB, "vendor": "amd"},
            ],
        )
        assert selectors.host_budget(fresh()).visible_ids == ()

    def test_the_entry_says_so(self):
        env = entry_env("llm", device_count=2, tensor_split=(0.7, 0.3), visible_ids=(1, 3))
        assert env == ["CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=1,3"]
        assert entry_env("llm", device_count=1, visible_ids=(2,))[-1] == "CUDA_VISIBLE_DEVICES=2"
        assert entry_env("llm", device_count=1) == []
        assert entry_env("image", device_count=1, visible_ids=(2,))[-1] == "CUDA_VISIBLE_DEVICES=2"
        assert entry_env("image", device_count=1) == []
