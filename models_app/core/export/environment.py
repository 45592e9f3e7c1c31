"""`env` of an entry: device pins (config-yaml.md 5.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence

BUS_ORDER = "CUDA_DEVICE_ORDER=PCI_BUS_ID"
PINS = {
    "cuda": "CUDA_VISIBLE_DEVICES",
    "vulkan": "GGML_VK_VISIBLE_DEVICES",
    "vk": "GGML_VK_VISIBLE_DEVICES",
    "rocm": "HIP_VISIBLE_DEVICES",
    "hip": "HIP_VISIBLE_DEVICES",
}
"""Stem of a backend's device id -> the variable that hides the other devices."""

SINGLE_DEVICE = frozenset({"image", "video", "tts", "3d", "embedding"})
"""Classes whose server uses one device only and must be told which."""

DEVICE_ID = re.compile(r"([A-Za-z]+)([0-9]+)")


def entry_env(
    model_class: str,
    *,
    device_count: int,
    backend_device: str = "",
    tensor_split: Sequence[float] = (),
    runtime: str = "",
    telemetry_index: int = 0,
    visible_ids: Sequence[int] = (),
    only_device: str = "",
) -> list[str]:
    """`NAME=value` items of one entry.

    `backend_device` is the main device as the backend numbers it ("" when the probe failed), `runtime` the compute
    runtime of the machine, `telemetry_index` the driver's own number of the main device. `visible_ids` are the numbers
    of the devices that plans use, where the machine has others too; `only_device` is the one that they use, as the
    backend numbers it, where it would see others.
    """
    if model_class == "llm" and visible_ids:
        return _pin("cuda", ",".join(map(str, visible_ids)))
    if model_class in SINGLE_DEVICE and device_count == 1 and visible_ids:
        return _pin("cuda", str(visible_ids[0]))
    if only_device and (model_class == "llm" or model_class in SINGLE_DEVICE):
        return _pin_of(only_device)
    if device_count < 2:
        return []
    if model_class == "llm":
        return [BUS_ORDER] if len(tensor_split) > 1 else []
    if model_class not in SINGLE_DEVICE:
        return []
    if not backend_device:
        return _pin("cuda", str(telemetry_index)) if runtime == "cuda" else []
    return _pin_of(backend_device)


def _pin_of(backend_device: str) -> list[str]:
    found = DEVICE_ID.fullmatch(backend_device)
    return _pin(found[1].lower(), found[2]) if found else []


def _pin(stem: str, index: str) -> list[str]:
    if stem not in PINS:
        return []
    return [*([BUS_ORDER] if stem == "cuda" else []), f"{PINS[stem]}={index}"]
