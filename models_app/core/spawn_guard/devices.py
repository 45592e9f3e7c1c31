"""Which devices a command will use, in the order of its own list, with what is free on them now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpus_app.core.gpu_set import DevicePolicy, GpuDevice, GpuSet, fold, gpu_set
from gpus_app.core.readings import DeviceReading
from gpus_app.core.runtimes import CUDA, ROCM, VULKAN, runtime_of
from models_app.core.spawn_guard.facts import Facts, LeaveAlone
from models_app.core.spawn_guard.options import GuardOptions

ORDER, BUS_ORDER = "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
RUNTIME_OF_NAME = {"cuda": CUDA, "rocm": ROCM, "hip": ROCM, "vulkan": VULKAN}
"""How the names of devices begin -> the runtime that numbers them."""
VENDOR = {CUDA: "nvidia", ROCM: "amd"}
"""The runtimes that see the cards of one vendor only."""
HIDING = {CUDA: "CUDA_VISIBLE_DEVICES", ROCM: "HIP_VISIBLE_DEVICES", VULKAN: "GGML_VK_VISIBLE_DEVICES"}
"""The variable by which a runtime is kept from devices."""
ALSO_HIDING = {ROCM: ("ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES")}
"""Further ones, which number what others have left over."""
_NAME = re.compile(r"([A-Za-z]+)([0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class LaunchDevices:
    """Devices in launch order. `runtime` is the one that planning counts with.

    `names` are those of `--device`, () without that list; `positions` say where each device stands among all that the
    program sees.
    """

    devices: tuple[GpuDevice, ...]
    runtime: str
    names: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()

    @property
    def free_bytes(self) -> tuple[int, ...]:
        return tuple(device.free_bytes for device in self.devices)

    def main_last(self) -> LaunchDevices:
        """With the emptiest device at the end of the list, where the fixed buffers go (sizing.md 14.3). Without a list
        the order is the backend's own.
        """
        main = GpuSet(self.devices).live_main
        if not self.names or main is None:
            return self
        order = [place for place in range(len(self.devices)) if place != main] + [main]
        devices, names, positions = (
            tuple(column[place] for place in order) for column in (self.devices, self.names, self.positions)
        )
        return LaunchDevices(devices, self.runtime, names, positions)  # type: ignore[arg-type]


def policy_of(options: GuardOptions) -> DevicePolicy:
    return DevicePolicy(
        min_vram_gib=options.min_device_gb,
        shared_memory=options.shared_memory,
        pool_integrated=options.pool_integrated,
        multi_gpu=options.multi_gpu,
    )


def launch_devices(facts: Facts, options: GuardOptions, program: str, names: Sequence[str] = ()) -> LaunchDevices:
    """The devices of a launch. Raises LeaveAlone where they cannot be told, or none was read."""
    readings, environment = facts.readings, facts.environment
    if not readings:
        raise LeaveAlone("there is no reading of a GPU")
    runtime = runtime_of(readings, program)
    numbering = _named_runtime(names) or runtime
    vendor = VENDOR.get(numbering, "")
    if vendor in facts.failed or (facts.failed and not vendor):
        raise LeaveAlone("not every device could be read")
    own = [reading for reading in readings if VENDOR.get(numbering, reading.vendor) == reading.vendor]
    if len(own) > 1 and (name := next((name for name in ALSO_HIDING.get(numbering, ()) if name in environment), "")):
        raise LeaveAlone(f"{name} hides devices")
    listed = environment.get(HIDING[numbering])
    seen = own if listed is None else _visible(own, listed)
    policy = policy_of(options)
    if names:
        positions = _numbered(names, seen)
        chosen = [fold(seen[position], policy) for position in positions]
    else:
        chosen = list(gpu_set(seen, policy).devices)
        index_at = {reading.index: position for position, reading in enumerate(seen)}
        positions = tuple(index_at[device.index] for device in chosen)
    if not chosen:
        raise LeaveAlone("there is no reading of a GPU that counts")
    hidden_by_number = any(word.strip().isdecimal() for word in (listed or "").split(","))
    by_number = bool(names) or len(chosen) > 1 or hidden_by_number
    if by_number and not _order_is_known(own, numbering, environment):
        raise LeaveAlone(f"nobody knows in which order {numbering} numbers the devices")
    return LaunchDevices(tuple(chosen), runtime, tuple(names), positions)


def _order_is_known(devices: Sequence[DeviceReading], numbering: str, environment: Mapping[str, str]) -> bool:
    """Ours is that of the bus. CUDA follows it where it is told to; Vulkan has an order of its own."""
    if len(devices) < 2:
        return True
    if numbering == VULKAN:
        return False
    alike = len({device.name for device in devices}) == 1
    return alike or (numbering == CUDA and environment.get(ORDER) == BUS_ORDER)


def _named_runtime(names: Sequence[str]) -> str:
    """The runtime that all names belong to, "" without names."""
    found = {RUNTIME_OF_NAME.get(match[1].lower(), "") if (match := _NAME.fullmatch(name)) else "" for name in names}
    if not names:
        return ""
    if len(found) != 1 or "" in found:
        raise LeaveAlone(f"nobody knows which devices {','.join(names)[:60]} are")
    return found.pop()


def _numbered(names: Sequence[str], seen: Sequence[DeviceReading]) -> tuple[int, ...]:
    """Positions of named devices among those that the program sees."""
    numbers = tuple(int(match[2]) for name in names if (match := _NAME.fullmatch(name)))
    if len(set(numbers)) != len(numbers) or max(numbers) >= len(seen):
        raise LeaveAlone(f"nobody knows which devices {','.join(names)[:60]} are")
    return numbers


def _visible(readings: Sequence[DeviceReading], listed: str) -> list[DeviceReading]:
    """The devices that are not hidden, in the order in which they are numbered then. As CUDA reads its variable: a word
    that names no device ends the list.
    """
    found: list[DeviceReading] = []
    for word in listed.split(","):
        device = _device(word.strip(), readings)
        if device is None or device in found:
            break
        found.append(device)
    return found


def _device(word: str, readings: Sequence[DeviceReading]) -> DeviceReading | None:
    if word.isdecimal() and len(word) < 4:
        return readings[int(word)] if int(word) < len(readings) else None
    return next((item for item in readings if word and item.uuid.startswith(word)), None)
