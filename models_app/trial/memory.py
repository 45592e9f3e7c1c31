"""The most memory that a started program holds: RAM of it and its children, device memory beyond what was in use.

A driver tells what is in use on a device; whose it is, few tell. So a figure of a device is what was added to it since
the moment before the start, by whoever it was.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

from gpus_app.core.probes.machine import read_machine
from gpus_app.core.readings import DeviceReading

EVERY_SECONDS = 0.5


def device_readings() -> tuple[DeviceReading, ...]:
    return read_machine().devices


@dataclass
class MemoryWatch:
    """Looks twice a second, in a thread of its own. `peak_bytes` and `devices` are what was most at one time."""

    peak_bytes: int = 0
    _before: Mapping[int, int] = field(default_factory=dict)
    _names: Mapping[int, str] = field(default_factory=dict)
    _most: dict[int, int] = field(default_factory=dict)
    _members: dict[int, float] = field(default_factory=dict)
    """Process id -> when it started; a number may be given to somebody else meanwhile."""
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        devices = device_readings()
        self._before = {device.index: device.used_bytes for device in devices}
        self._names = {device.index: device.name for device in devices}

    @contextlib.contextmanager
    def following(self, pid: int) -> Iterator[None]:
        """Look while the block runs. What it started under other process groups is killed in the end."""
        thread = threading.Thread(target=self._follow, args=(pid,), name=f"memory-{pid}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.look(pid)
            self._over.set()
            thread.join(EVERY_SECONDS * 4)

    def _follow(self, pid: int) -> None:
        while not self._over.wait(EVERY_SECONDS):
            self.look(pid)

    def look(self, pid: int) -> None:
        """One look at the process with this number, its children and its group."""
        held = 0
        for process in _family(pid):
            with contextlib.suppress(psutil.Error):  # it ended meanwhile
                self._members[process.pid] = process.create_time()
                held += process.memory_info().rss
        self.peak_bytes = max(self.peak_bytes, held, _high_water_bytes(pid))
        for device in device_readings():
            added = device.used_bytes - self._before.get(device.index, device.used_bytes)
            self._most[device.index] = max(self._most.get(device.index, 0), added)

    def devices(self) -> list[dict[str, Any]]:
        """What was added to each device at most."""
        return [
            {"index": index, "name": self._names.get(index, "")[:100], "bytes": most}
            for index, most in sorted(self._most.items())
        ]

    def kill_left_over(self) -> None:
        """Whatever was seen to belong to it and still runs: a child in a session of its own outlives its group."""
        for pid, started in self._members.items():
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                if process.create_time() == started:
                    process.kill()


def _family(pid: int) -> Iterator[psutil.Process]:
    """A process, all that descend from it, and all of its group."""
    parents = {pid}
    for process in sorted(psutil.process_iter(["ppid"]), key=lambda process: process.pid):
        if process.pid == pid or process.info["ppid"] in parents or _group_of(process.pid) == pid:
            parents.add(process.pid)
            yield process


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def _high_water_bytes(pid: int) -> int:
    """What the kernel remembers as the most of one process, 0 where it does not tell: no look is needed for that."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status", encoding="ascii") as stream:
        for line in stream:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0
