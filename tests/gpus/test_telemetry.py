"""Samples of hosts: believed within bounds, stored once, a bounded past, and what devices learn from them."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from gpus_app import sampling, telemetry
from gpus_app.agent_messages import ABOUT_A_HOST
from gpus_app.core.probes.drm_clients import Held
from gpus_app.core.readings import DeviceReading, DiskReading, MachineReading, MemoryReading, ProcessReading
from gpus_app.models import Device, Telemetry, TelemetryPoint
from gpus_app.selectors import get_host, host_budget
from gpus_app.services import note_heartbeat
from gpus_app.tasks import host_sampled
from models_app.models import Root, Router
from models_app.pages.live_history import values_of
from quartermaster_site.jobs.models import Job, State
from tests.gpus.test_hosts import GIB, card, finish_probe


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    calls = []
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda task, queue, **more: calls.append((task, more)))
    return calls


def seen(index=0, gib=24, used=1, **more):
    """A card as a sample has it."""
    return card(index, gib, used_bytes=int(used * GIB), vendor="nvidia", uuid=f"GPU-{index}", **more)


@pytest.fixture
def sampled(host):
    """`sampled(number, cards…)` receives a sample of a host whose cards are known."""
    finish_probe(host, devices=[seen(0), seen(1)])
    Telemetry.objects.create(host=host)

    def receive(number, *cards, run="a", **more):
        ram = {"total_bytes": 64 * GIB, "available_bytes": 60 * GIB}
        facts = {"run": run, "number": number, "ram": ram, "devices": list(cards or (seen(0), seen(1))), **more}
        host_sampled(slug=host.slug, sample=facts)
        return Telemetry.objects.get()

    return receive


def test_a_sample_is_stored_once(sampled):
    row = sampled(1, cpu_percent=7.04)
    assert (row.number, row.sample["cpu_percent"]) == (1, 7.0)
    received = row.received_at
    assert sampled(1, seen(0, used=9)).received_at == received, "the same again"
    assert sampled(2, seen(0, used=9), seen(1)).sample["devices"][0]["used_bytes"] == 9 * GIB
    assert sampled(1, seen(0), seen(1)).number == 2, "one that comes late"
    assert sampled(1, run="b").number == 1, "a worker that started anew counts anew"


def test_nobody_is_heard_who_was_not_asked(host):
    host_sampled(slug=host.slug, sample={"run": "a", "number": 1, "devices": []})
    host_sampled(slug="stranger", sample={"run": "a", "number": 1, "devices": []})
    assert not Telemetry.objects.exists()


@pytest.mark.parametrize(
    "facts",
    [
        {"devices": "many"},
        {"devices": [seen(0)] * 65},
        {"devices": [{**seen(0), "total_bytes": -1}]},
        {"devices": [{**seen(0), "utilisation_percent": 1e9}]},
        {"devices": [{**seen(0), "temperature_celsius": float("nan")}]},
        {"devices": [{**seen(0), "others": [["x", "y"]]}]},
        {"devices": [{**seen(0), "others": [["x", 1]] * 6}]},
        {"devices": [{**seen(0), "ours_bytes": 1 << 70}]},
        {"ram": []},
        {"ram": {"total_bytes": "all"}},
        {"disks": [{"path": "x" * 2000}]},
        {"disks": [{}] * 33},
        {"notes": ["x"] * 33},
        {"cpu_percent": True},
        {"run": None},
        {"number": 0},
    ],
)
def test_a_sample_is_not_believed_blindly(sampled, facts):
    given = {"run": "a", "number": 5, "devices": [seen(0), seen(1)], **facts}
    host_sampled(slug="local", sample=given)
    host_sampled(slug=given, sample=7)
    assert Telemetry.objects.get().received_at is None
    assert not TelemetryPoint.objects.exists()


def test_the_past_is_bounded(sampled, monkeypatch):
    """Two hours of samples leave an hour of points, in order."""
    start = timezone.now()
    for step in range(0, 7200, 60):
        monkeypatch.setattr(timezone, "now", lambda step=step: start + timedelta(seconds=step))
        sampled(step + 1)
    found = telemetry.points(get_host("local"), Telemetry.objects.get().received_at)
    assert TelemetryPoint.objects.count() == len(found) == 60
    assert [point.at for point in found] == sorted(point.at for point in found)
    assert found[-1].values == {
        "devices": {"0": [GIB, 24 * GIB, None, None], "1": [GIB, 24 * GIB, None, None]},
        "ram": [4 * GIB, 64 * GIB],
    }


def test_an_integrated_device_is_remembered_with_what_it_borrows(sampled):
    """Also where only its name says that it is one."""
    apu = seen(0, 2, 1, shared_total_bytes=14 * GIB, shared_used_bytes=7 * GIB) | {"name": "AMD Ryzen 7 7840U"}
    sample = sampled(1, apu, seen(1, 24, 6, shared_total_bytes=16 * GIB, shared_used_bytes=GIB)).sample
    assert [device["integrated"] for device in sample["devices"]] == [True, False]
    assert TelemetryPoint.objects.get().values["devices"] == {
        "0": [8 * GIB, 16 * GIB, None, None],
        "1": [6 * GIB, 24 * GIB, None, None],
    }
    assert values_of(sample) == {"gpu-0": [50.0, None], "gpu-1": [25.0, None], "ram": [6.2]}


def test_two_samples_of_ten_seconds_are_one_point(sampled, monkeypatch):
    now = timezone.now().replace(second=10, microsecond=0)
    monkeypatch.setattr(timezone, "now", lambda: now)
    sampled(1)
    sampled(2, seen(0, used=5), seen(1))
    assert TelemetryPoint.objects.get().values["devices"]["0"][0] == 5 * GIB


def test_devices_follow_their_samples(sampled):
    sampled(1, seen(0, used=20), seen(1))
    device = Device.objects.get(index=0)
    assert (device.free_bytes, device.free_mark_bytes) == (4 * GIB, 23 * GIB)
    sampled(2, seen(0, used=0.5), seen(1))
    device.refresh_from_db()
    assert (device.free_bytes, device.free_mark_bytes) == (23.5 * GIB, 23.5 * GIB)


def test_small_changes_are_not_written(sampled, django_assert_num_queries):
    """The row of the host, its devices, the sample, the point."""
    sampled(1)
    with django_assert_num_queries(5):
        sampled(2, seen(0, used=1.001), seen(1))


def test_what_our_launches_hold_will_be_free_again(sampled):
    """A worker that starts while a model is loaded learns how empty the card can be."""
    Device.objects.update(free_bytes=2 * GIB, free_mark_bytes=2 * GIB)
    sampled(1, seen(0, used=22, ours_bytes=21 * GIB), seen(1, used=22))
    first, second = Device.objects.all()
    assert (first.free_bytes, first.free_mark_bytes, second.free_mark_bytes) == (2 * GIB, 23 * GIB, 2 * GIB)
    assert (first.ours_bytes, second.ours_bytes) == (21 * GIB, None)
    sampled(2, seen(0, used=22), seen(1, used=22, ours_bytes=0))
    assert [device.ours_bytes for device in Device.objects.all()] == [None, 0]


def test_a_higher_mark_renews_plans(sampled, sent, django_capture_on_commit_callbacks):
    Job.objects.create(kind="plan_host", host=get_host("local"), token="t", state=State.SUCCEEDED)
    Device.objects.update(free_bytes=2 * GIB, free_mark_bytes=2 * GIB)
    before = host_budget(get_host("local")).target_bytes
    with django_capture_on_commit_callbacks(execute=True):
        sampled(1, seen(0, used=1), seen(1, used=1))
    assert host_budget(get_host("local")).target_bytes > before
    assert Job.objects.filter(kind="plan_host").count() == 2
    with django_capture_on_commit_callbacks(execute=True):
        sampled(2, seen(0, used=0.99), seen(1, used=20))
    assert Job.objects.filter(kind="plan_host").count() == 2, "a breath more, or less, renews nothing"


@pytest.mark.parametrize(
    "cards",
    [[seen(0)], [seen(0), seen(1), seen(2)], [seen(0), seen(1, gib=48)], [seen(0), {**seen(1), "uuid": "GPU-9"}]],
)
def test_other_devices_are_probed_once_a_minute(sampled, host, cards):
    sampled(1, *cards)
    assert Job.objects.filter(kind="probe_devices").count() == 1, "the probe was seconds ago"
    type(host).objects.update(probed_at=timezone.now() - timedelta(minutes=2))
    sampled(2, *cards)
    sampled(3, *cards)
    assert Job.objects.filter(kind="probe_devices").count() == 2
    assert Device.objects.count() == 2, "the probe says it, not the sample"


def test_a_driver_that_fails_is_no_other_device(sampled, host):
    type(host).objects.update(probed_at=timezone.now() - timedelta(minutes=2))
    row = sampled(1, seen(0), failed=["nvidia"], notes=["nvidia: GPU 1 does not answer"])
    assert Job.objects.filter(kind="probe_devices").count() == 1
    assert row.sample["notes"] == ["nvidia: GPU 1 does not answer"]


class TestOrders:
    def beat(self):
        note_heartbeat(slug="local", worker="w", version="1", sent_at=time.time())

    def orders(self, sent):
        return [more for task, more in sent if task == sampling.ORDER_TASK]

    def test_an_order_says_what_a_worker_cannot_know(self, host, sent):
        type(host).objects.update(publish_path="/srv/router/config.yaml")
        Root.objects.create(host=host, path="/models")
        Router.objects.create(host=host, url="http://127.0.0.1:8080")
        self.beat()
        (order,) = self.orders(sent)
        assert order == {
            "seconds": 600.0,
            "paths": ["/models", "/srv/router"],
            "router_url": "http://127.0.0.1:8080",
        }

    @pytest.mark.parametrize(
        ("since_order", "since_sample", "renewed"),
        [
            (5, 3, False),
            (55, 3, False),
            (65, 3, True),
            (5, 40, False),
            (15, 40, True),
            (5, None, False),
            (15, None, True),
        ],
    )
    def test_it_is_renewed_each_minute_and_sooner_for_a_silent_worker(
        self, host, sent, since_order, since_sample, renewed
    ):
        now = timezone.now()
        Telemetry.objects.create(
            host=host,
            ordered_at=now - timedelta(seconds=since_order),
            received_at=None if since_sample is None else now - timedelta(seconds=since_sample),
        )
        self.beat()
        assert bool(self.orders(sent)) == renewed


@pytest.fixture
def machine(monkeypatch):
    """A machine with one card; counts how often it is read."""
    times = []
    device = DeviceReading(
        0, "card", 24 * GIB, 20 * GIB, vendor="nvidia", processes=(ProcessReading(1, 2 * GIB),), power_watts=100.0
    )

    def read():
        times.append(1)
        return MachineReading((device,), MemoryReading(64 * GIB, 60 * GIB), ("amd: none",), ())

    monkeypatch.setattr(sampling, "read_machine", read)
    return times


class TestSampler:
    def test_use_is_told_from_two_samples_where_a_driver_counts_sleep(self, monkeypatch):
        clock = iter((100.0, 105.0, 110.0, 115.0))
        monkeypatch.setattr(sampling, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        card = DeviceReading(0, "Arc", 16 << 30, vendor="intel", idle_milliseconds=1000)
        amd = DeviceReading(1, "RX", 16 << 30, vendor="amd", utilisation_percent=7.0)
        sampler = sampling.Sampler()

        def use(idle):
            machine = MachineReading((replace(card, idle_milliseconds=idle), amd), None)
            return [device.utilisation_percent for device in sampler._with_use(machine).devices]

        assert use(1000) == [None, 7.0]
        assert use(2000) == [80.0, 7.0]
        assert use(None) == [None, 7.0]
        assert use(9000) == [None, 7.0]

    def test_what_it_sends_is_believed(self, sampled, machine, tmp_path):
        sampler = sampling.Sampler()
        sampler.order = sampling.Order(time.monotonic() + 60, (str(tmp_path), "/no/such/folder"))
        sample = sampler.take()
        host_sampled(slug="local", sample=sample)
        stored = Telemetry.objects.get().sample
        assert stored["devices"][0]["power_watts"] == 100
        assert stored["devices"][0]["ours_note"] == sampling.NO_ROUTER
        assert [bool(disk["total_bytes"]) for disk in stored["disks"]] == [True, False]
        assert stored["disks"][1]["problem"] == DiskReading("x", problem="No such file or directory").problem
        assert sampler.take()["number"] == 2

    def test_whose_memory_it_is_with_a_router_here(self, machine, monkeypatch):
        monkeypatch.setattr(sampling.owners, "listener", lambda port: 1 if port == 8080 else None)
        monkeypatch.setattr(sampling.owners, "families", lambda roots: frozenset(roots))
        sampler = sampling.Sampler()
        sampler.order = sampling.Order(time.monotonic() + 60, (), "http://127.0.0.1:8080")
        (device,) = sampler.take()["devices"]
        assert (device["ours_bytes"], device["ours_note"], device["others"]) == (2 * GIB, "", [])
        sampler = sampling.Sampler()
        sampler.order = sampling.Order(time.monotonic() + 60, (), "http://127.0.0.1:9")
        (device,) = sampler.take()["devices"]
        assert device["ours_bytes"] is None
        assert "listens at port 9" in device["ours_note"]

    def test_an_amd_card_whose_router_runs_as_somebody_else(self, monkeypatch):
        device = DeviceReading(0, "Radeon", 24 * GIB, 20 * GIB, vendor="amd", pci_address="0000:03:00.0")
        monkeypatch.setattr(sampling, "read_machine", lambda: MachineReading((device,), None))
        monkeypatch.setattr(sampling.owners, "listener", lambda port: 1)
        monkeypatch.setattr(sampling.owners, "families", lambda roots: frozenset(roots))
        for held, ours, note in (
            (None, None, sampling.OF_ANOTHER_USER),
            ({"0000:03:00.0": {1: Held(18 * GIB, GIB)}}, 18 * GIB, ""),
        ):
            monkeypatch.setattr(sampling.drm_clients, "held_by", lambda pids, held=held: held)
            sampler = sampling.Sampler()
            sampler.order = sampling.Order(time.monotonic() + 60, (), "http://127.0.0.1:8080")
            (said,) = sampler.take()["devices"]
            assert (said["ours_bytes"], said["ours_note"]) == (ours, note)

    def test_it_falls_silent_without_an_order(self):
        sampler = sampling.Sampler()
        assert not sampler.is_wanted()
        sampler.order = sampling.Order(time.monotonic() + 60)
        assert sampler.is_wanted()
        sampling.keep_sampling(seconds=0.0, paths=["/b", "/a", "/b"], router_url="")
        assert sampling.SAMPLER.order.paths == ("/b", "/a")
        assert not sampling.SAMPLER.is_wanted()

    def test_it_goes_on_until_there_is_trouble(self, machine, monkeypatch):
        gone = []
        monkeypatch.setattr(sampling, "send", lambda *args, **more: gone.append(more["sample"]["number"]))
        monkeypatch.setattr(sampling, "EVERY_SECONDS", 0.0)
        monkeypatch.setattr(sampling, "SAMPLER", sampling.Sampler())
        monkeypatch.setattr(sampling._over, "wait", lambda seconds: len(gone) >= 3)
        sampling.SAMPLER.order = sampling.Order(time.monotonic() + 60)
        sampling._sample_until_trouble()
        assert gone == [1, 2, 3]

        def away(*args, **more):
            raise OSError("the broker is away")

        monkeypatch.setattr(sampling, "send", away)
        sampling._sample_until_trouble()
        assert len(machine) == 4

    def test_the_thread_samples_only_while_it_is_told_to(self, monkeypatch):
        rounds, wanted = iter([False, False, False, True]), iter([False, True, False])
        monkeypatch.setattr(sampling._over, "wait", lambda seconds: next(rounds))
        monkeypatch.setattr(sampling.Sampler, "is_wanted", lambda self: next(wanted))
        done = []
        monkeypatch.setattr(sampling, "_sample_until_trouble", lambda: done.append(1))
        sampling._keep_sampling()
        assert done == [1]


def test_an_enrolled_machine_may_send_them():
    assert sampling.TASK in ABOUT_A_HOST
