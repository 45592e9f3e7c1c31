"""AMD and Intel from trees like the kernel's, with contents that no kernel should write."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from gpus_app.core.probes import amd, apple, drm_clients, intel, kfd, sysfs
from gpus_app.core.readings import ProcessReading
from gpus_app.core.units import GIB
from tests.gpus.test_probes import write

HOSTILE = ["", "\x00", "-1", "1e9", "0x10", "٣", "9" * 400, "12 34", "\ufffe", "nan", "a" * 100_000]


@pytest.fixture
def machine(tmp_path: Path):
    """Two AMD cards with nodes, the second one busy, and what KFD knows of them."""
    for number, bus in ((0, 3), (1, 0x43)):
        write(
            tmp_path / "drm" / f"card{number}" / "device",
            {
                "uevent": f"DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{bus:02x}:00.0",
                "product_name": f"Radeon {number}",
                "unique_id": f"{number:016x}",
                "mem_info_vram_total": 24 * GIB,
                "mem_info_vram_used": number * 20 * GIB,
                "mem_info_gtt_total": 31 * GIB,
                "mem_info_gtt_used": GIB,
                "gpu_busy_percent": 50 * number,
                "hwmon/hwmon1/temp1_input": 61000,
                "hwmon/hwmon1/power1_input": 303000000,
            },
        )
        write(tmp_path / "dri", {f"card{number}": ""})
        properties = f"simd_count 192\nlocal_mem_size {24 * GIB}\nlocation_id {bus << 8}"
        write(tmp_path / "nodes" / str(number + 1), {"properties": properties, "gpu_id": 1000 + number})
    write(tmp_path / "nodes" / "0", {"properties": "cpu_cores_count 16\nsimd_count 0", "gpu_id": 0})
    write(tmp_path / "proc" / "77", {"vram_1001": 19 * GIB, "vram_1000": 0, "vram_x": 5})
    return tmp_path


def read(machine: Path):
    return amd.read(machine / "drm", machine / "nodes", machine / "proc", machine / "dri")


def test_two_cards_and_whose_memory_it_is(machine):
    first, second = read(machine).devices
    assert (first.index, first.name, first.integrated) == (0, "Radeon 0", False)
    assert (second.used_bytes, second.shared_used_bytes) == (20 * GIB, GIB)
    assert (first.processes, second.processes) == (None, (ProcessReading(77, 19 * GIB),))
    assert (second.temperature_celsius, second.power_watts, second.utilisation_percent) == (61, 303, 50)


def test_two_cards_at_the_same_place_of_two_pci_domains(machine):
    """As on large ARM machines: the location that KFD tells is the same for both."""
    for number in (0, 1):
        write(
            machine / "drm" / f"card{number}" / "device",
            {"uevent": f"DRIVER=amdgpu\nPCI_SLOT_NAME=000{number}:01:00.0"},
        )
        properties = f"simd_count 192\nlocal_mem_size {number * 24 * GIB}\nlocation_id 256\ndomain {number}"
        write(machine / "nodes" / str(number + 1), {"properties": properties})
    first, second = read(machine).devices
    assert (first.integrated, second.integrated) == (True, False)
    assert (first.processes, second.processes) == (None, (ProcessReading(77, 19 * GIB),))


@pytest.mark.parametrize("address", ["zz:aa:bb", "0000:zz:00.0", "::", ""])
def test_an_address_that_is_none_has_no_node(address):
    assert kfd.node_at({1: {"location_id": 0}}, address) == {}


def test_a_card_that_was_not_given_to_this_container(machine):
    (machine / "dri" / "card1").unlink()
    assert [device.name for device in read(machine).devices] == ["Radeon 0"]
    (machine / "dri" / "card0").unlink()
    result = read(machine)
    assert (result.devices, result.failed) == ((), False)
    assert "card0, card1 cannot be used here" in result.note


@pytest.mark.parametrize("content", HOSTILE)
def test_no_content_of_a_file_is_an_error(machine, content):
    """Whatever stands in it: unknown is unknown, and sizes are never negative."""
    files = [path for path in (machine / "drm" / "card1" / "device").rglob("*") if path.is_file()]
    for path in files:
        if path.name != "uevent":
            path.write_text(content, encoding="utf-8")
    for path in itertools.chain((machine / "nodes").rglob("*"), (machine / "proc").rglob("*")):
        if path.is_file():
            path.write_text(f"{content} {content}\n{content}", encoding="utf-8")
    first, second = read(machine).devices
    assert first.total_bytes == 24 * GIB
    assert (second.total_bytes, second.used_bytes, second.shared_total_bytes) == (0, 0, 0)
    assert (second.temperature_celsius, second.power_watts, second.utilisation_percent) == (None, None, None)
    assert len(second.name) <= 100


def test_files_that_cannot_be_read(machine):
    """A figure that is a folder, a link to nowhere, a link to itself."""
    device = machine / "drm" / "card1" / "device"
    for name in ("mem_info_vram_used", "gpu_busy_percent", "product_name"):
        (device / name).unlink()
    (device / "mem_info_vram_used").mkdir()
    (device / "gpu_busy_percent").symlink_to("nowhere")
    (device / "product_name").symlink_to("product_name")
    device_read = read(machine).devices[1]
    assert (device_read.used_bytes, device_read.utilisation_percent) == (0, None)
    assert device_read.name.startswith("amdgpu [")


def test_an_unlikely_sensor_says_nothing(machine):
    write(machine / "drm" / "card1" / "device", {"hwmon/hwmon1/temp1_input": -273150, "gpu_busy_percent": 65535})
    device = read(machine).devices[1]
    assert (device.temperature_celsius, device.utilisation_percent) == (None, None)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "name").write_bytes(b"\xff\xfe\x00Radeon")
    assert "Radeon" in sysfs.text(tmp_path / "name")
    assert sysfs.number(tmp_path / "name") is None


@pytest.mark.parametrize(
    ("driver", "files", "used"),
    [
        ("xe", {"device/lmem_total_bytes": 16 * GIB, "device/lmem_avail_bytes": 15 * GIB}, GIB),
        ("i915", {"lmem_total_bytes": 16 * GIB, "lmem_avail_bytes": 0}, 16 * GIB),
        ("xe", {"device/tile0/vram0/total": 16 * GIB, "device/tile0/vram0/used": 2 * GIB}, 2 * GIB),
    ],
)
def test_an_intel_card(tmp_path, driver, files, used):
    card = tmp_path / "drm" / "card1"
    write(card, {"device/uevent": f"DRIVER={driver}\nPCI_SLOT_NAME=0000:03:00.0", "device/device": "0x56A0", **files})
    write(card, {"device/hwmon/hwmon4/temp2_input": 55000})
    write(tmp_path / "dri", {"card1": ""})
    (device,) = intel.read(tmp_path / "drm", tmp_path / "dri").devices
    assert (device.name, device.total_bytes, device.used_bytes) == ("Intel GPU [8086:56a0]", 16 * GIB, used)
    assert (device.temperature_celsius, device.utilisation_percent) == (55, None)


@pytest.mark.parametrize(
    ("files", "milliseconds"),
    [
        ({"device/tile0/gt0/gtidle/idle_residency_ms": 12345}, 12345),
        ({"gt/gt0/rc6_residency_ms": 77, "power/rc6_residency_ms": 78}, 77),
        ({"power/rc6_residency_ms": 78}, 78),
        ({"power/rc6_residency_ms": "no"}, None),
        ({"gt/gt0/rc6_residency_ms": 77, "device/power/runtime_status": "suspended"}, None),
        ({}, None),
    ],
)
def test_how_long_an_intel_card_slept(tmp_path, files, milliseconds):
    card = tmp_path / "drm" / "card1"
    write(card, {"device/uevent": "DRIVER=xe", "device/lmem_total_bytes": 16 * GIB, **files})
    write(tmp_path / "dri", {"card1": ""})
    (device,) = intel.read(tmp_path / "drm", tmp_path / "dri").devices
    assert device.idle_milliseconds == milliseconds


def test_an_integrated_intel_gpu_and_a_card_that_keeps_silent(tmp_path):
    write(tmp_path / "card0" / "device", {"uevent": "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0"})
    write(tmp_path / "card1" / "device", {"uevent": "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0"})
    write(tmp_path / "card2" / "device", {"uevent": "DRIVER=nouveau"})
    result = intel.read(tmp_path)
    assert result.devices == ()
    assert "an integrated Intel GPU without memory of its own" in result.note
    assert "card1 does not tell its memory" in result.note
    assert intel.read(tmp_path / "none").note == "no Intel device"


def test_apple_is_said_not_to_be_read(monkeypatch):
    assert apple.read().note == ""
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    assert "set the VRAM target by hand" in apple.read().note
    assert apple.read().devices == ()


CLIENT = """pos:	0
drm-driver:	amdgpu
drm-client-id:	{client}
drm-pdev:	0000:03:00.0
drm-memory-vram:	{vram}
drm-memory-gtt:	512 MiB
"""


def test_memory_of_clients(tmp_path):
    """Two descriptors of one client count once, another client is added, another driver and rubbish are left out."""
    write(tmp_path / "7" / "fdinfo", {"3": CLIENT.format(client=1, vram="3 GiB")})
    write(tmp_path / "7" / "fdinfo", {"4": CLIENT.format(client=1, vram="3 GiB")})
    write(tmp_path / "7" / "fdinfo", {"5": CLIENT.format(client=2, vram="1048576 KiB"), "6": "pos: 0"})
    write(tmp_path / "7" / "fdinfo", {"8": CLIENT.format(client=3, vram="9 GiB").replace("amdgpu", "nouveau")})
    write(tmp_path / "7" / "fdinfo", {"9": CLIENT.format(client=4, vram="9" * 300)})
    held = drm_clients.held_by([7, 8], tmp_path)
    assert held["0000:03:00.0"][7].own_bytes == 4 * GIB
    assert held["0000:03:00.0"][7].shared_bytes == 3 * 512 * (1 << 20)
    assert drm_clients.held_of(drm_clients.parse("drm-driver: xe\ndrm-resident-vram0: 2 GiB")).own_bytes == 2 * GIB


def test_what_another_user_holds_cannot_be_read(tmp_path, monkeypatch):
    write(tmp_path / "7" / "fdinfo", {"3": CLIENT.format(client=1, vram="3 GiB")})

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert drm_clients.held_by([8], tmp_path) == {}, "it has ended"
    assert drm_clients.held_by([7, 8], tmp_path) is None


def test_numbers_of_the_kernel_stay_numbers():
    assert kfd.parse_properties("a 1\nb x\nc 1 2\nd " + "9" * 50) == {"a": 1}
    assert kfd.fdinfo_bytes("9" * 50 + " GiB") is None
