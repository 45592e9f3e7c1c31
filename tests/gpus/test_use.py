"""Whose memory it is: processes of the router and of others, and what nobody can tell."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest

from gpus_app.core.probes import disks, owners
from gpus_app.core.readings import DeviceReading, ProcessReading
from gpus_app.core.units import GIB
from gpus_app.core.use import DeviceUse, busy_percent, device_use

OURS = frozenset({10, 11})
NAMES = {20: "python3", 21: "Xorg", 22: "blender"}


def card(*processes, used=20):
    return DeviceReading(
        0, "card", 24 * GIB, int(used * GIB), processes=tuple(ProcessReading(*each) for each in processes)
    )


@pytest.mark.parametrize(
    ("slept_milliseconds", "passed_seconds", "percent"),
    [(0, 5, 100), (5000, 5, 0), (5100, 5, 0), (3750, 5, 25), (-1, 5, None), (9000, 5, None), (0, 0, None)],
)
def test_a_device_is_busy_while_it_does_not_sleep(slept_milliseconds, passed_seconds, percent):
    assert busy_percent(slept_milliseconds, passed_seconds) == percent


def test_ours_and_theirs():
    reading = card((10, 6 * GIB), (20, 4 * GIB), (21, GIB))
    use = device_use(reading, OURS, None, NAMES.get)
    assert use == DeviceUse(6 * GIB, others=(("python3", 4 * GIB), ("Xorg", GIB)))
    assert use.foreign_bytes(reading.used_bytes, GIB // 2) == 13.5 * GIB
    assert use.foreign_bytes(GIB) == 0


def test_the_larger_of_two_accounts_counts():
    """KFD does not see Vulkan, the clients' account does not see ROCm."""
    use = device_use(card((10, 6 * GIB)), OURS, {10: GIB, 11: 3 * GIB}, NAMES.get)
    assert use.ours_bytes == 9 * GIB


def test_nobody_is_accused_where_nobody_can_tell():
    silent = DeviceReading(0, "card", 24 * GIB, 20 * GIB)
    assert device_use(silent, OURS, None, NAMES.get).ours_bytes is None
    assert device_use(silent, OURS, {10: GIB}, NAMES.get).ours_bytes == GIB
    unseen = device_use(card((99, 6 * GIB)), OURS, None, NAMES.get)
    assert (unseen.ours_bytes, unseen.foreign_bytes(20 * GIB)) == (None, None)
    assert "another container" in unseen.note
    assert device_use(card(), OURS, None, NAMES.get).note == "the driver names no process: it runs in another container"
    assert device_use(card(used=0.9), OURS, None, NAMES.get).ours_bytes == 0


def test_five_of_many_are_named():
    many = card(*((100 + number, number) for number in range(1, 50)))
    assert [size for _, size in device_use(many, OURS, None, lambda pid: f"p{pid}").others] == [49, 48, 47, 46, 45]


def test_the_router_is_found_by_its_port_with_all_that_it_started():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert owners.listener(listening.getsockname()[1]) == os.getpid()
        assert owners.listener(1) is None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= owners.families([os.getpid(), 4_000_000])
        assert owners.name_of(child.pid)
        child.communicate(b"\n")
    assert owners.name_of(4_000_000) is None


def test_only_an_address_of_this_machine_has_a_port_here():
    assert owners.local_port("http://127.0.0.1:8080/x") == 8080
    assert owners.local_port("http://[::1]") == 80
    assert owners.local_port("http://gpu-7:8080") is None
    assert owners.local_port("http://127.0.0.1:x") is None
    assert owners.local_port("") is None


def test_a_share_that_does_not_answer_holds_nobody_up(tmp_path, monkeypatch):
    gone = threading.Event()
    real = disks.read

    def read(path):
        if path == "/dead":
            gone.wait(10)
        return real(path)

    monkeypatch.setattr(disks, "read", read)
    asked = disks.Disks()
    dead, here, missing = asked.read(["/dead", str(tmp_path), str(tmp_path / "no")], 0.2)
    assert (dead.problem, here.problem, missing.problem) == ("does not answer", "", "No such file or directory")
    assert here.total_bytes > here.free_bytes > 0
    before = threading.active_count()
    asked.read(["/dead"], 0.0)
    assert threading.active_count() == before
    gone.set()
