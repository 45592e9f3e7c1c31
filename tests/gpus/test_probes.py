"""Readings from drivers and the kernel: a fake /sys, texts of the vendors' tools, and machines without any."""

from __future__ import annotations

import sys
from pathlib import Path

import pynvml
import pytest

from gpus_app.core.probes import amd, kfd, machine, nvidia, nvidia_smi, rocm_smi
from gpus_app.core.readings import DeviceReading, ProbeResult
from gpus_app.core.units import GIB, MIB


def write(folder: Path, files: dict[str, object]) -> None:
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


class TestKfd:
    def test_apu_card_and_cpu(self):
        assert kfd.is_apu({"simd_count": 48, "local_mem_size": 0}) is True
        assert kfd.is_apu({"simd_count": 240, "local_mem_size": 25753026560}) is False
        assert kfd.is_apu({"simd_count": 0}) is None
        assert kfd.is_apu({}) is None

    @pytest.mark.parametrize(
        ("address", "location"),
        [
            ("0000:65:00.0", 0x6500),
            ("0000:0c:00.0", 0x0C00),
            ("0000:03:00.1", 0x0301),
            ("65:00.0", 0x6500),
            ("nonsense", None),
            ("zz:00.0", None),
            ("0000:65:00", None),
            ("0000:65:1f.7", 0x65FF),
            ("0000:65:20.0", None),
        ],
    )
    def test_locations(self, address, location):
        assert kfd.location_of(address) == location

    @pytest.mark.parametrize(
        ("value", "size"),
        [("229184 KiB", 229184 << 10), ("1 GiB", GIB), ("512 MiB", 512 * MIB), ("1024", 1024), ("", None), ("x", None)],
    )
    def test_fdinfo(self, value, size):
        assert kfd.fdinfo_bytes(value) == size

    def test_shared_memory_of_an_apu(self):
        assert kfd.integrated_shared_used(1024, 8192, True) == 8192
        assert kfd.integrated_shared_used(1024, 512, True) == 1024
        assert kfd.integrated_shared_used(1024, 8192, False) == 1024

    def test_utilisation(self):
        assert amd.memory_utilisation_percent(2, 1, 15, 4, True) == pytest.approx(100 * 5 / 17)
        assert amd.memory_utilisation_percent(24, 6, 0, 0, False) == 25
        assert amd.memory_utilisation_percent(0, 0, 0, 0, False) == 0


class TestAmd:
    def test_an_apu_and_a_foreign_card(self, tmp_path):
        drm, nodes, processes = tmp_path / "drm", tmp_path / "nodes", tmp_path / "proc"
        write(
            drm / "card0" / "device",
            {
                "uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:65:00.0",
                "vendor": "0x1002",
                "device": "0x15BF",
                "mem_info_vram_total": 2 * GIB,
                "mem_info_vram_used": 257698037,
                "mem_info_gtt_total": 16 * GIB,
                "mem_info_gtt_used": GIB,
                "gpu_busy_percent": 7,
                "hwmon/hwmon3/temp1_input": 45000,
                "hwmon/hwmon3/power1_average": 12500000,
                "drm/renderD128/uevent": "",
            },
        )
        write(drm / "card1" / "device", {"uevent": "DRIVER=i915"})
        write(tmp_path / "dri", {"renderD128": ""})
        write(drm / "card0-DP-1", {"status": "connected"})
        write(nodes / "1", {"properties": f"simd_count 48\nlocal_mem_size 0\nlocation_id {0x6500}"})
        write(processes / "4711", {"vram_1": 8 * GIB, "pasid": 3})
        result = amd.read(drm, nodes, processes, tmp_path / "dri")
        (device,) = result.devices
        assert device.name == "amdgpu [1002:15bf]"
        assert device.integrated is True
        assert device.shared_used_bytes == 8 * GIB
        assert (device.temperature_celsius, device.power_watts, device.utilisation_percent) == (45, 12.5, 7)

    def test_nothing_there(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        result = amd.read(tmp_path, tmp_path, tmp_path)
        assert result.devices == ()
        assert "no AMD device" in result.note
        assert not result.failed

    def test_rocm_smi(self):
        text = (
            "WARNING: something\n"
            "device,VRAM Total Memory (B),VRAM Total Used Memory (B),GTT Total Memory (B),GTT Total Used Memory (B),"
            "Card Series,GFX Version\n"
            "card0,2147483648,257698037,17179869184,1073741824,,\n"
            "card0,,,,,AMD Radeon 780M,gfx1103\n"
        )
        (device,) = rocm_smi.parse_table(text)
        assert (device.total_bytes // MIB, device.used_bytes // MIB) == (2048, 245)
        assert (device.shared_total_bytes // MIB, device.shared_used_bytes // MIB) == (16384, 1024)
        assert device.name == "AMD Radeon 780M (gfx1103)"
        assert rocm_smi.parse_table("no table") == ()

    def test_rocm_smi_names_the_node_that_kfd_calls_an_apu(self):
        """A carve-out of 16 GiB under a name that says nothing: only the kernel knows."""
        text = "device,Node ID,VRAM Total Memory (B),GTT Total Memory (B)\n"
        rows = [f"card{n},{node},{16 * GIB},{40 * GIB}" for n, node in enumerate((1, 2, 99, ""))]
        nodes = {1: {"simd_count": 40, "local_mem_size": 0}, 2: {"simd_count": 96, "local_mem_size": 16 * GIB}}
        found = rocm_smi.parse_table(text + "\n".join(rows), nodes)
        assert [device.integrated for device in found] == [True, False, None, None]

    def test_a_tool_that_knows_no_gtt_is_asked_without(self, tmp_path, monkeypatch):
        program = tmp_path / "rocm-smi"
        table = "device,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,8589934592,1073741824"
        program.write_text(f'#!/bin/sh\ncase "$*" in *gtt*) echo "invalid choice" >&2; exit 2;; esac\necho "{table}"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        result = amd.read(tmp_path, tmp_path, tmp_path)
        assert [(device.total_bytes, device.used_bytes) for device in result.devices] == [(8 * GIB, GIB)]
        program.write_text('#!/bin/sh\necho "driver is away" >&2; exit 2\n')
        result = amd.read(tmp_path, tmp_path, tmp_path)
        assert (result.devices, result.failed, result.note) == ((), True, "rocm-smi failed: driver is away")


ROW = "{}, NVIDIA RTX 3060, GPU-{}, 40, 3, 1024, 12288, [N/A], 20.5"


class TestNvidiaSmi:
    def test_a_snapshot_is_a_whole_pass(self):
        lines = [ROW.format(index, index) for index in (0, 1, 0, 1, 0)]
        assert [len(rows) for rows in nvidia_smi.snapshots(["header", *lines, "0, short, row"])] == [2, 2, 1]

    def test_one_card_is_one_row_a_pass(self):
        assert [len(rows) for rows in nvidia_smi.snapshots([ROW.format(0, 0)] * 3)] == [1, 1, 1]

    def test_figures(self):
        ((row,),) = nvidia_smi.snapshots([ROW.format(0, "x")])
        device = nvidia_smi.reading_of_row(row)
        assert (device.total_bytes, device.used_bytes, device.power_watts) == (12 * GIB, GIB, 20.5)

    def test_processes(self):
        found = nvidia_smi.processes(["123, 2048, C:\\a, b\\x.exe", "124, [N/A], y.exe", "garbage"])
        assert [(process.pid, process.used_bytes // MIB, process.name) for process in found] == [
            (123, 2048, "C:\\a, b\\x.exe")
        ]


class TestNvidia:
    """Through NVML: tests/gpus/test_nvml.py."""

    def test_no_library_and_no_command(self, monkeypatch, tmp_path):
        def fail():
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

        monkeypatch.setattr(pynvml, "nvmlInit", fail)
        monkeypatch.setenv("PATH", str(tmp_path))
        result = nvidia.read()
        assert (result.devices, result.failed) == ((), False)
        assert result.note == "no NVIDIA driver (NVML Shared Library Not Found)"

    def test_the_command_stands_in(self, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "pynvml", None)
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{ROW.format(0, 0)}'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        (device,) = nvidia.read().devices
        assert device.total_bytes == 12 * GIB

    def test_the_command_says_who_holds_memory(self, monkeypatch, tmp_path):
        """Of a card on which one process keeps silent nothing is said; a tool that cannot tell hides no card."""
        monkeypatch.setitem(sys.modules, "pynvml", None)
        program = tmp_path / "nvidia-smi"
        cards = "\n".join(ROW.format(index, index) for index in (0, 1, 2))
        apps = "GPU-0, 7, 100, a, b\nGPU-0, 8, 50, c\nGPU-1, 9, [N/A], d"
        for code, expected in ((0, [((7, 100), (8, 50)), None, ()]), (1, [None, None, None])):
            asked = f"case \"$*\" in *compute*) printf '{apps}'; exit {code};; esac"
            program.write_text(f"#!/bin/sh\n{asked}\nprintf '{cards}'\n")
            program.chmod(0o755)
            monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
            found = [
                each.processes and tuple((process.pid, process.used_bytes // MIB) for process in each.processes)
                for each in nvidia.read().devices
            ]
            assert found == expected


class TestMachine:
    def test_all_that_answer_are_merged(self):
        def one() -> ProbeResult:
            return ProbeResult("one", (DeviceReading(0, "a", GIB),))

        def other() -> ProbeResult:
            return ProbeResult("other", (DeviceReading(0, "b", GIB),))

        def broken() -> ProbeResult:
            raise OSError("library is gone")

        seen = machine.read_machine((one, broken, other))
        assert [(device.index, device.name) for device in seen.devices] == [(0, "a"), (1, "b")]
        assert "library is gone" in seen.notes[0]
        assert seen.failed == ("test_probes",)
        assert seen.memory is not None
        assert seen.memory.total_bytes > 0

    def test_the_real_probes_never_fail(self):
        assert machine.read_machine().memory is not None
