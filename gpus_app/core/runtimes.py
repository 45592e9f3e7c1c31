"""Which GPU runtime a backend uses, and what one process of it costs outside llama.cpp's allocator (sizing.md 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gpus_app.core.readings import DeviceReading
from gpus_app.core.units import from_gib

CUDA = "cuda"
VULKAN = "vulkan"
ROCM = "rocm"

_RUNTIME_GIB = {CUDA: 0.3, ROCM: 0.8}
_OTHER_RUNTIME_GIB = 0.4

_ROCM_MARKS = ("rocm", "hipblas", "-hip", "_hip", "/hip", ".hip")
_OTHER_MARKS = ("vulkan", "kompute", "cuda", "cublas")

Verdict = Literal["rocm", "not_rocm", "keep"]


def runtime_gib(runtime: str) -> float:
    """Driver and library memory of one process on one device."""
    return _RUNTIME_GIB.get(runtime, _OTHER_RUNTIME_GIB)


def runtime_bytes(runtime: str) -> int:
    return from_gib(runtime_gib(runtime))


def rocm_verdict(executable: str) -> Verdict:
    """What the backend's path says about ROCm; `keep` where it says nothing and an earlier verdict stands."""
    path = executable.lower().replace("\\", "/")
    if any(mark in path for mark in _ROCM_MARKS):
        return "rocm"
    return "not_rocm" if any(mark in path for mark in _OTHER_MARKS) else "keep"


def runtime_of(devices: Sequence[DeviceReading], executable: str = "") -> str:
    """The runtime of a machine: the class of its largest device, ROCm where the backend's path says so.

    Before any reading the answer is CUDA.
    """
    if not devices:
        return ROCM if rocm_verdict(executable) == "rocm" else CUDA
    largest = max(devices, key=lambda device: device.total_bytes)
    if largest.vendor == "nvidia" or "nvidia" in largest.name.lower():
        return CUDA
    return ROCM if rocm_verdict(executable) == "rocm" else VULKAN
