"""What a backend calls the devices, and when it is asked."""

from __future__ import annotations

from gpus_app.core.backend_probe import ListingCache, ProbeAllowance
from gpus_app.core.device_listing import ListedDevice, match_devices, parse_listing, visible_device
from gpus_app.core.probes.listing import run_listing
from gpus_app.core.units import GIB

LISTING = """ggml_vulkan: Found 2 Vulkan devices:
  Vulkan0: AMD Radeon RX 7900 XTX (24560 MiB, 23748 MiB free)
  Vulkan1: AMD Radeon(TM) Graphics (16384 MiB, 15000 MiB free)
  Vulkan0: AMD Radeon RX 7900 XTX (24560 MiB, 23748 MiB free)
  CPU0: Some CPU (0 MiB, 0 MiB free)
cuda0\tNVIDIA GeForce RTX 3060
"""


def listed(*devices: tuple[str, str, float]) -> list[ListedDevice]:
    return [ListedDevice(name, text, round(size * GIB)) for name, text, size in devices]


def match(ours: list[tuple[str, float]], theirs: list[ListedDevice]) -> tuple[str, ...]:
    return match_devices([(name, round(size * GIB)) for name, size in ours], theirs)


class TestParsing:
    def test_shapes(self):
        found = parse_listing(LISTING)
        assert [device.id for device in found] == ["Vulkan0", "Vulkan1", "cuda0"]
        assert found[0] == ListedDevice("Vulkan0", "AMD Radeon RX 7900 XTX", 24560 << 20)
        assert found[2] == ListedDevice("cuda0", "NVIDIA GeForce RTX 3060")

    def test_noise(self):
        assert parse_listing("load_backend: loaded CUDA backend\nAvailable devices:\n\n") == ()

    def test_a_name_with_brackets(self):
        (device,) = parse_listing("  Vulkan0: AMD Radeon 780M (RADV PHOENIX) (16384 MiB, 15000 MiB free)")
        assert device.name == "AMD Radeon 780M (RADV PHOENIX)"


class TestMatching:
    TI = ("NVIDIA GeForce RTX 4070 Ti SUPER", 16.0)
    SMALL = ("NVIDIA GeForce RTX 3060", 12.0)

    def test_ids_come_in_our_order(self):
        theirs = listed(("CUDA0", *self.SMALL), ("CUDA1", *self.TI))
        assert match([self.TI, self.SMALL], theirs) == ("CUDA1", "CUDA0")

    def test_a_further_device_is_skipped(self):
        theirs = listed(("Vulkan0", "AMD Radeon RX 7900 XTX", 24), ("Vulkan1", "AMD Radeon(TM) Graphics", 16))
        assert match([("AMD Radeon RX 7900 XTX", 24)], theirs) == ("Vulkan0",)

    def test_all_or_nothing(self):
        assert match([self.TI, self.SMALL], listed(("CUDA0", *self.SMALL))) == ()

    def test_twins_are_two(self):
        theirs = listed(("CUDA0", "RTX 3090", 24), ("CUDA1", "RTX 3090", 24))
        assert match([("NVIDIA GeForce RTX 3090", 24)] * 2, theirs) == ("CUDA0", "CUDA1")

    def test_a_model_is_not_its_bigger_sister(self):
        theirs = listed(("CUDA0", "NVIDIA GeForce RTX 4070 Ti", 12), ("CUDA1", "NVIDIA GeForce RTX 4070", 12))
        assert match([("NVIDIA GeForce RTX 4070", 12)], theirs) == ("CUDA1",)
        assert match([("NVIDIA GeForce RTX 4070", 12)], theirs[:1]) == ()

    def test_the_size_must_be_near(self):
        assert match([("RTX 3080", 10)], listed(("CUDA0", "RTX 3080", 12))) == ()
        assert match([("RTX 3080", 10)], listed(("CUDA0", "RTX 3080", 0))) == ("CUDA0",)

    def test_a_longer_name_still_matches(self):
        theirs = listed(("Vulkan0", "AMD Radeon 780M Graphics (RADV PHOENIX)", 18))
        assert match([("AMD Radeon 780M Graphics", 18)], theirs) == ("Vulkan0",)

    def test_an_empty_name_never_matches(self):
        assert match([("NVIDIA", 8)], listed(("CUDA0", "NVIDIA", 8))) == ()


class TestVisibleDevice:
    def test_by_prefix(self):
        assert visible_device("CUDA1") == ("CUDA_VISIBLE_DEVICES", "1")
        assert visible_device("Vulkan0") == ("GGML_VK_VISIBLE_DEVICES", "0")
        assert visible_device("ROCm2") == ("HIP_VISIBLE_DEVICES", "2")

    def test_others_give_nothing(self):
        assert [visible_device(name) for name in ("SYCL0", "Metal0", "Vulkan", "0", "")] == [None] * 5


class TestProbe:
    def test_time_is_bounded(self):
        allowance = ProbeAllowance()
        granted = []
        for _ in range(3):
            granted.append(allowance.grant())
            allowance.spend(granted[-1])
        assert granted == [15, 5, 0]

    def test_a_build_is_asked_once(self):
        asked: list[str] = []
        cache = ListingCache(lambda path, _seconds: asked.append(path), lambda: 0.0)
        for mtime in (1, 1, 2):
            assert cache.listing(("server", 5, mtime)) is None
        assert asked == ["server", "server"]

    def test_a_hanging_build_uses_up_the_time(self):
        clock = iter((0.0, 15.0, 15.0, 20.0))
        cache = ListingCache(lambda _path, _seconds: None, lambda: next(clock))
        for number in range(3):
            cache.listing(("server", number, 0))
        assert cache.allowance.left_seconds == 0

    def test_what_a_program_prints(self, tmp_path):
        program = tmp_path / "server"
        program.write_text(
            '#!/bin/sh\necho "  CUDA0: card (8192 MiB, 8000 MiB free) $CUDA_DEVICE_ORDER $1" >&2\nexit 3\n'
        )
        program.chmod(0o755)
        text = run_listing(str(program), 5, {"PATH": "/usr/bin:/bin"})
        assert text is not None
        assert "PCI_BUS_ID --list-devices" in text

    def test_a_program_that_is_not_there(self, tmp_path):
        assert run_listing(str(tmp_path / "none"), 5, {}) is None

    def test_a_program_that_hangs(self, tmp_path):
        program = tmp_path / "server"
        program.write_text("#!/bin/sh\nexec sleep 5\n")
        program.chmod(0o755)
        assert run_listing(str(program), 0.2, {"PATH": "/usr/bin:/bin"}) is None
