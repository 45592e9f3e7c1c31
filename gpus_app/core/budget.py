"""What a plan may use of a host (sizing.md 13): starting values, seeding, the idle mark, and the budget itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpus_app.core.device_listing import number_of
from gpus_app.core.gpu_set import GpuDevice, GpuSet
from gpus_app.core.readings import DeviceReading, MemoryReading
from gpus_app.core.runtimes import CUDA, runtime_bytes, runtime_of
from gpus_app.core.shares import in_order, shared
from gpus_app.core.units import GIB, floor_gib, from_gib

NVIDIA = "nvidia"
"""The vendor whose cards a launch can be kept from by their numbers."""
PLACEHOLDER_VRAM_GIB = 7.0
PLACEHOLDER_RAM_GIB = 24.0
_LEAST_VRAM_GIB = 1.0
_LEAST_RAM_GIB = 2.0
_LEAST_SHARE_BYTES = 2 * GIB
"""Of a target below what the devices have, each keeps as much as a process needs on every device that it sees."""
_MOST_BYTES = 1 << 60
"""No machine has an exbibyte; a larger figure is a slip and is cut to this."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Targets of the devices in the order in which a launch lists them, and the RAM cap.

    `device_bytes` is empty where nothing may go to a GPU; `ram_bytes` 0 means no cap. The last device carries the
    output weights and the fixed buffers.
    """

    device_bytes: tuple[int, ...] = ()
    ram_bytes: int = 0
    runtime: str = CUDA
    device_names: tuple[str, ...] = ()
    backend_ids: tuple[str, ...] = ()
    """What the backend calls the devices (`CUDA1`), in the same order; empty where that is not known."""
    main_gpu: int | None = None
    """The value of `--main-gpu`: a position in `backend_ids` where they are known, else the telemetry id."""
    capacity_bytes: tuple[int, ...] = ()
    """What each device has at all; empty where that is not known."""
    reserved_bytes: tuple[int, ...] = ()
    """What of each device is left to others, beside its capacity; empty where that is not known."""
    bus_ids: tuple[int, ...] = ()
    """The driver's numbers of the devices, in bus order, where the machine has others; empty where there are none, or
    where another runtime than CUDA numbers them.
    """
    ranks: tuple[int, ...] = ()
    """The order in which the devices are filled, equal ones together; empty where it is the same for all."""
    numbers: tuple[int, ...] = ()
    """Telemetry's number of each device; empty where they are not of a machine."""
    is_lone: bool = False
    """Of several devices that the server sees, this one holds everything."""

    @property
    def visible_ids(self) -> tuple[int, ...]:
        """The only devices that a CUDA server may see: it would share the layers among all that it sees. Empty where
        it may see all, or where `backend_ids` name the devices.
        """
        return () if self.backend_ids else self.bus_ids

    def label(self, place: int) -> str:
        """What a person knows the device at a place as: `GPU 1`, as all pages call it."""
        return f"GPU {self.numbers[place]}" if self.numbers else f"device {place}"

    @property
    def only_id(self) -> str:
        """What the backend calls the only device in use, where it would see others too; "" elsewhere."""
        return self.backend_ids[0] if len(self.device_bytes) == 1 and self.backend_ids else ""

    @property
    def by_preference(self) -> tuple[int, ...]:
        """Positions of the devices in the order in which a launch that needs only some of them takes them: the
        preferred, of these the largest.
        """
        sizes, ranks = self.device_bytes, self.ranks or (0,) * len(self.device_bytes)
        return tuple(sorted(range(len(sizes)), key=lambda place: (ranks[place], -sizes[place], place)))

    @property
    def launch_main(self) -> int:
        """The value of `--main-gpu` among the devices that a launch sees."""
        if self.main_gpu in self.visible_ids and not self.backend_ids:
            return self.visible_ids.index(self.main_gpu)
        return self.main_gpu if self.main_gpu is not None else max(0, len(self.device_bytes) - 1)

    @property
    def target_bytes(self) -> int:
        return sum(self.device_bytes)

    @property
    def runtime_bytes(self) -> int:
        """What a process costs on each device outside llama.cpp's own figures."""
        return runtime_bytes(self.runtime)

    def with_target(self, target_bytes: int) -> Budget:
        """The same devices under another sum, in the same proportion; of less, those that are filled first get more,
        where the last one, with the fixed buffers, is one of them. None is asked for more than it has: what one cannot
        take goes to the others.
        """
        if target_bytes == self.target_bytes or not self.device_bytes:
            return self
        weights = self.device_bytes if self.target_bytes > 0 else (1,) * len(self.device_bytes)
        limits = self.capacity_bytes or (_MOST_BYTES,) * len(weights)
        target = min(max(0, target_bytes), _MOST_BYTES)
        least = [min(weight, _LEAST_SHARE_BYTES) for weight in weights]
        if self.ranks and self.ranks[-1] == min(self.ranks) and sum(least) <= target < self.target_bytes:
            return replace(self, device_bytes=in_order(target, weights, least, self.ranks))
        return replace(self, device_bytes=shared(target, weights, limits))

    def with_ram(self, ram_gib: float) -> Budget:
        return replace(self, ram_bytes=_bytes_of(ram_gib))

    def with_device_for(self, target_gib: float) -> Budget:
        """Where no GPU was seen, a target typed for one model is a device of that size."""
        if self.device_bytes or not target_gib > 0:
            return self
        return replace(self, device_bytes=(_bytes_of(target_gib),))

    def unnamed(self) -> Budget:
        """The devices in the order in which the backend numbers them, for a launch that gives no list of them."""
        if not self.backend_ids:
            return self
        numbers = [number_of(name) for name in self.backend_ids]
        main = numbers[self.main_gpu] if self.main_gpu is not None else None
        places = sorted(range(len(numbers)), key=lambda place: numbers[place])
        return replace(self._of(places), backend_ids=(), main_gpu=main)

    def listed(self, names: Sequence[str]) -> Budget:
        """These devices, in this order, for a launch that lists them itself; all, where one of them is not known."""
        known = set(names) <= set(self.backend_ids) and len(set(names)) == len(names)
        places = [self.backend_ids.index(name) for name in names] if known else range(len(self.device_bytes))
        main = max(0, len(places) - 1) if known else 0
        is_lone = 1 == len(places) < len(self.device_bytes)
        return replace(self._of(places), backend_ids=(), bus_ids=(), main_gpu=main, is_lone=is_lone)

    def alone(self, place: int | None = None) -> Budget:
        """One device for everything, by its place in the launch; without one the main device."""
        place = self.launch_main if place is None else place
        if not 0 <= place < len(self.device_bytes):
            return self
        main = self.bus_ids[place] if self.bus_ids else place
        return replace(self._of([place]), backend_ids=(), main_gpu=main, is_lone=True)

    def _of(self, places: Sequence[int]) -> Budget:
        """The devices at these places."""
        columns = (
            "device_bytes",
            "device_names",
            "backend_ids",
            "capacity_bytes",
            "reserved_bytes",
            "ranks",
            "numbers",
        )
        rows = {name: getattr(self, name) for name in columns}
        chosen: dict[str, Any] = {name: tuple(row[place] for place in places) for name, row in rows.items() if row}
        return replace(self, **chosen)

    def without_devices(self) -> Budget:
        """The budget of a launch that must stay in RAM."""
        return Budget(ram_bytes=self.ram_bytes, runtime=self.runtime)


def budget_of(
    targets_gib: Iterable[float], ram_gib: float = 0.0, *, runtime: str = CUDA, names: tuple[str, ...] = ()
) -> Budget:
    """A budget from figures in GiB. Zero, negative and NaN targets are no device; absurd ones are cut."""
    sizes = tuple(size for value in targets_gib if (size := _bytes_of(value)) > 0)
    return Budget(device_bytes=sizes, ram_bytes=_bytes_of(ram_gib), runtime=runtime, device_names=names[: len(sizes)])


def budget_for_set(
    devices: GpuSet,
    target_gib: float,
    ram_gib: float,
    *,
    runtime: str = CUDA,
    backend_ids: tuple[str, ...] = (),
    others: bool = False,
) -> Budget:
    """The pooled target shared among the devices by their capacity. `others`: the machine has devices beside these.

    With the backend's own ids known, the main device goes last, because the last one carries the fixed buffers; else
    the order is the set's, which is the bus order that a launch gets without `--device`.
    """
    members = list(devices.devices)
    main = devices.plan_main
    if main is None or _bytes_of(target_gib) <= 0:
        return Budget(ram_bytes=_bytes_of(ram_gib), runtime=runtime)
    order = list(range(len(members)))
    ids = backend_ids if len(backend_ids) == len(members) else ()
    if others and runtime == CUDA and len(members) == 1:
        ids = ()  # the driver's own number says as much
    if ids:
        order = [position for position in order if position != main] + [main]
    chosen = [members[position] for position in order]
    whole = Budget(
        device_bytes=tuple(device.capacity_bytes for device in chosen),
        ram_bytes=_bytes_of(ram_gib),
        runtime=runtime,
        device_names=tuple(device.name for device in chosen),
        backend_ids=tuple(ids[position] for position in order) if ids else (),
        main_gpu=len(order) - 1 if ids else members[main].index,
        capacity_bytes=tuple(device.total_bytes for device in chosen),
        reserved_bytes=tuple(device.reserve_bytes for device in chosen),
        bus_ids=tuple(device.index for device in members) if others and runtime == CUDA else (),
        ranks=_ranks(chosen),
        numbers=tuple(device.index for device in chosen),
    )
    return whole.with_target(_bytes_of(target_gib))


def _ranks(devices: Sequence[GpuDevice]) -> tuple[int, ...]:
    ranks = tuple(device.rank for device in devices)
    return ranks if len(set(ranks)) > 1 else ()


def machine_budget(
    devices: GpuSet,
    seen: Sequence[DeviceReading],
    target_gib: float,
    ram_gib: float,
    *,
    backend_ids: tuple[str, ...] = (),
) -> Budget:
    """What plans of a machine may use: the devices in use, of all that were `seen`, under a target.

    A target where no device is in use counts as one device of that size.
    """
    if not devices.devices:
        return budget_of([target_gib] if target_gib > 0 else [], ram_gib)
    whole = not any(device.partition for device in seen)  # an instance has no number that a launch could be given
    others = whole and len(seen) > len(devices) and all(device.vendor == NVIDIA for device in seen)
    runtime = runtime_of(seen)
    return budget_for_set(devices, target_gib, ram_gib, runtime=runtime, backend_ids=backend_ids, others=others)


def free_budget(devices: GpuSet, memory: MemoryReading | None, *, runtime: str = CUDA) -> Budget:
    """What is free at this moment: the default of the verb `plan`."""
    return Budget(
        device_bytes=tuple(device.free_bytes for device in devices.devices),
        ram_bytes=memory.free_bytes if memory is not None else 0,
        runtime=runtime,
        device_names=tuple(device.name for device in devices.devices),
        main_gpu=devices.devices[devices.plan_main].index if devices.plan_main is not None else None,
        capacity_bytes=tuple(device.total_bytes for device in devices.devices),
        numbers=tuple(device.index for device in devices.devices),
    )


def recommended_vram_gib(devices: GpuSet) -> float | None:
    """The VRAM target to start with: what is free now, None below 1 GiB."""
    free_gib = devices.free_bytes / GIB
    return floor_gib(free_gib) if free_gib >= _LEAST_VRAM_GIB else None


def recommended_ram_gib(memory: MemoryReading | None) -> float | None:
    """The RAM cap to start with: what the system calls available, None below 2 GiB."""
    if memory is None:
        return None
    available_gib = memory.free_bytes / GIB
    return floor_gib(available_gib) if available_gib >= _LEAST_RAM_GIB else None


def seed_budget(written_gib: float | None, recommended_gib: float | None, placeholder_gib: float) -> float:
    """A written figure is the user's, whatever it is; else the recommendation, else the placeholder."""
    if written_gib is not None:
        return written_gib
    return recommended_gib if recommended_gib else placeholder_gib


def auto_vram_target(target_gib: float, mark_gib: float) -> float:
    """The target under `autoVram`: the idle mark only ever lowers it."""
    return target_gib if mark_gib < _LEAST_VRAM_GIB else min(target_gib, mark_gib)


def high_water(samples: Iterable[float], mark: float = 0.0) -> Iterator[float]:
    """The largest free value ever seen, after each sample.

    Plans are renewed while models are loaded, so a raw sample would shrink the budget to nothing. A sample should have
    the estimates of our own running launches added back before it comes here.
    """
    for sample in samples:
        mark = max(mark, sample)
        yield mark


def _bytes_of(value_gib: float) -> int:
    if math.isnan(value_gib) or value_gib <= 0:
        return 0
    return min(_MOST_BYTES, from_gib(min(value_gib, _MOST_BYTES / GIB)))
