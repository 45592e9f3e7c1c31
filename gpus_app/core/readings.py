"""What probes report. Raw facts only: which devices count is decided by `gpu_set`.

Sizes are bytes; a driver's MiB are MiB of 2**20 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """Memory that one process holds on a device."""

    pid: int
    used_bytes: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One GPU as a driver or the kernel describes it at one moment."""

    index: int
    """The vendor's own number of the device, in PCI bus order where there is one."""
    name: str
    total_bytes: int
    used_bytes: int = 0
    """All that is not free, the driver's own reserve included."""
    shared_total_bytes: int = 0
    """Host memory that the device may borrow (GTT, WDDM shared memory)."""
    shared_used_bytes: int = 0
    integrated: bool | None = None
    """What the kernel says (KFD: no memory of its own); None where it says nothing."""
    vendor: str = ""
    uuid: str = ""
    pci_address: str = ""
    sample: int = 0
    """Order of samples: of two readings of one device the higher one is newer."""
    temperature_celsius: float | None = None
    utilisation_percent: float | None = None
    power_watts: float | None = None
    idle_milliseconds: int | None = None
    """How long it has slept so far, where the driver counts that and does not tell how much it is used."""
    reserved_bytes: int = 0
    """What the driver keeps for itself, part of `used_bytes`; 0 where it does not say."""
    processes: tuple[ProcessReading, ...] | None = None
    """Who holds memory on it; None where the driver does not say, or not of everyone."""

    @property
    def partition(self) -> bool:
        """A MIG instance: a process can use one of them, never several. NVIDIA's unique ids say so."""
        return self.uuid.startswith("MIG-")


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """System RAM."""

    total_bytes: int
    available_bytes: int
    used_bytes: int = 0

    @property
    def free_bytes(self) -> int:
        """What the system calls available; what is not used where that is no figure (sizing.md 13.1)."""
        if 0 < self.available_bytes <= self.total_bytes:
            return self.available_bytes
        return self.total_bytes - self.used_bytes


@dataclass(frozen=True, slots=True)
class DiskReading:
    """The file system below a folder. `problem` says why its figures are not known."""

    path: str
    total_bytes: int = 0
    free_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one vendor's probe found. `note` says in a sentence why there is nothing, or what is missing."""

    vendor: str
    devices: tuple[DeviceReading, ...] = ()
    note: str = ""
    failed: bool = False
    """True where the driver is there but not every device could be asked: an absence then means nothing."""


@dataclass(frozen=True, slots=True)
class MachineReading:
    """Everything that was read in one pass."""

    devices: tuple[DeviceReading, ...]
    memory: MemoryReading | None
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Vendors of which an absent device means nothing."""
