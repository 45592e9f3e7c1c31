"""What processes hold on devices by the kernel's own account of DRM clients (`/proc/PID/fdinfo`, sizing.md 17).

Read for a few processes only: a whole machine has too many open files to look at every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpus_app.core.probes import kfd, sysfs

PROC = Path("/proc")
_OWN = {
    "amdgpu": ("memory-vram",),
    "xe": ("resident-vram0", "resident-vram1"),
    "i915": ("resident-local0", "resident-local1"),
}
"""Driver -> the keys (after `drm-`) of the device's own memory."""
_SHARED = {"amdgpu": ("memory-gtt",)}
"""The same of what it borrows from the host."""
_MOST_FILES = 4096
"""Of one process; a server that holds more open files than that is no server of models."""


@dataclass(frozen=True, slots=True)
class Held:
    """Memory of one device."""

    own_bytes: int = 0
    shared_bytes: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(self.own_bytes + other.own_bytes, self.shared_bytes + other.shared_bytes)


def held_by(pids: Iterable[int], proc: Path = PROC) -> dict[str, dict[int, Held]] | None:
    """PCI address of a device -> process -> what it holds. A client that several files share counts once.

    None where a process belongs to another user, who alone may read that.
    """
    found: dict[str, dict[int, Held]] = {}
    counted: set[tuple[str, str]] = set()
    for pid in pids:
        texts = _texts(proc / str(pid) / "fdinfo")
        if texts is None:
            return None
        for text in texts:
            facts = parse(text)
            client = (facts.get("pdev", ""), facts.get("client-id", ""))
            if client[0] and client not in counted and facts.get("driver") in _OWN:
                counted.add(client)
                processes = found.setdefault(client[0], {})
                processes[pid] = processes.get(pid, Held()) + held_of(facts)
    return found


def _texts(folder: Path) -> list[str] | None:
    """Nothing for a process that has ended, None for one that may not be read."""
    try:
        paths = sorted(folder.iterdir())[:_MOST_FILES]
        for path in paths[:1]:
            path.read_bytes()
    except PermissionError:
        return None
    except OSError:
        return []
    return [sysfs.text(path) for path in paths]


def parse(text: str) -> dict[str, str]:
    """The `drm-` lines of one file, without that prefix."""
    pairs = (line.partition(":") for line in text.splitlines() if line.startswith("drm-"))
    return {key.removeprefix("drm-").strip(): value.strip() for key, _, value in pairs}


def held_of(facts: Mapping[str, str]) -> Held:
    """The memory of one client; nothing for a driver that we do not know."""

    def sizes(pools: Mapping[str, tuple[str, ...]]) -> int:
        names = pools.get(facts.get("driver", ""), ())
        return sum(kfd.fdinfo_bytes(facts.get(name, "")) or 0 for name in names)

    return Held(sizes(_OWN), sizes(_SHARED))
