"""What is checked again when a launch is about to start (sizing.md 16): rules over a finished argument list.

No list that comes in is ever changed; every rule answers with a new one.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpus_app.core.gpu_set import GpuSet
from gpus_app.core.split import format_split, live_split, main_last_order, permute_split
from gpus_app.core.units import GIB, floor_gib

MAX_VRAM = "--max-vram"
"""The cap that sd-server keeps by itself."""
SD_RESERVE_GIB = 1.0
SD_LEAST_GIB = 0.5


def live_budget_gib(free_gib: float, target_gib: float) -> float:
    """What a launch may use now; 0 free means that there was no reading."""
    if free_gib <= 0:
        return target_gib
    return min(free_gib, target_gib) if target_gib > 0 else free_gib


def gpu_fraction(block_count: int, gpu_layers: int) -> float:
    """Share of a dense model's weights on the GPU."""
    if block_count <= 0:
        return 1.0
    return min(1.0, max(0.0, gpu_layers / block_count))


def moe_gpu_fraction(block_count: int, cpu_moe_layers: int, expert_share: float) -> float:
    """Share of a mixture's weights on the GPU, when only experts are in RAM."""
    if block_count <= 0:
        return 1.0
    return 1.0 - expert_share * min(max(0, cpu_moe_layers), block_count) / block_count


def refuse_launch(baked_fraction: float, live_fraction: float, least_fraction: float) -> bool:
    """Refuse what would run far worse than planned; what a person planned below the bar is let through."""
    bar = max(0.0, least_fraction)
    return live_fraction < bar <= baked_fraction


def watchdog_ceiling_gib(budget_gib: float, excess_gib: float, reserve_gib: float) -> float:
    """What our launches may hold together while others hold more than they should."""
    if excess_gib <= 0:
        return budget_gib
    return max(0.0, budget_gib - excess_gib - max(0.0, reserve_gib))


def guard_cheap_cases(argv: Sequence[str], free_gib: float | None) -> list[str]:
    """The cases that need no model header; a launch that none of them knows is answered unchanged."""
    arguments = list(argv)
    if free_gib is None:
        return arguments
    if any(_is_cap(word) for word in arguments):
        return _cap_max_vram(arguments, free_gib)
    if any(word.lower().endswith(".ggml") for word in arguments) and "--no-gpu" not in arguments:
        return [*arguments, "--no-gpu"]
    return arguments


def retune_split(
    argv: Sequence[str],
    devices: GpuSet | None,
    *,
    main_fixed_gib: float,
    runtime: str,
    backend_ids: Sequence[str] = (),
) -> list[str]:
    """Shares by what is free now. `backend_ids` are the backend's names in the order of the set, () if unknown.

    A list of devices and its ratio belong together: where the list can't be derived again, neither is touched.
    """
    arguments = list(argv)
    if devices is None or devices.live_main is None or "--tensor-split" not in arguments:
        return arguments
    split = live_split(devices, main_fixed_gib, runtime)
    if not split:
        return arguments
    main_id = devices.devices[devices.live_main].index
    if "--device" not in arguments:
        _replace_value(arguments, "--main-gpu", str(main_id))
        _replace_value(arguments, "--tensor-split", format_split(split))
        return arguments
    if len(backend_ids) != len(devices):
        return arguments
    order = main_last_order([device.index for device in devices.devices], main_id)
    _replace_value(arguments, "--device", ",".join(backend_ids[position] for position in order))
    _replace_value(arguments, "--main-gpu", str(len(order) - 1))
    _replace_value(arguments, "--tensor-split", format_split(permute_split(split, order)))
    return arguments


def free_gib(devices: GpuSet | None) -> float | None:
    """Free memory of the set, None without a reading."""
    return devices.free_bytes / GIB if devices and devices.devices else None


def _is_cap(word: str) -> bool:
    return word == MAX_VRAM or word.startswith(f"{MAX_VRAM}=")


def _cap_max_vram(arguments: list[str], free_gib: float) -> list[str]:
    """The last cap counts, in a word of its own or in that of its flag."""
    place = max(number for number, word in enumerate(arguments) if _is_cap(word))
    name, mark, inline = arguments[place].partition("=")
    place += not mark
    try:
        wanted = float(inline if mark else arguments[place])
    except (ValueError, IndexError):
        return arguments
    budget = free_gib - SD_RESERVE_GIB
    if budget < wanted:
        capped = f"{floor_gib(max(SD_LEAST_GIB, budget)):.1f}"
        arguments[place] = f"{name}={capped}" if mark else capped
    return arguments


def _replace_value(arguments: list[str], flag: str, value: str) -> None:
    if flag in arguments and arguments.index(flag) + 1 < len(arguments):
        arguments[arguments.index(flag) + 1] = value
    else:
        arguments += [flag, value]
