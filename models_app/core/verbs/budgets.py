"""`--vram` and `--ram`: what planning may use of this machine."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from models_app.core.errors import UsageError

if TYPE_CHECKING:
    from gpus_app.core.budget import Budget

MAX_DEVICES = 64


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Declare the two options."""
    parser.add_argument("--vram", metavar="GiB[,GiB…]", help="target of each device in order; left out: what is free")
    parser.add_argument("--ram", metavar="GiB", help="RAM for models; left out: what is available")


def budget_from(options: argparse.Namespace) -> Budget:
    """The budget that the options say; what they leave out is what is free now. Raises `UsageError`."""
    targets = None if options.vram is None else [_figure("--vram", part) for part in options.vram.split(",")]
    ram_gib = None if options.ram is None else _figure("--ram", options.ram)
    if targets is not None and len(targets) > MAX_DEVICES:
        raise UsageError(f"--vram names {len(targets)} devices; at most {MAX_DEVICES}")
    return _budget(targets, ram_gib)


def _figure(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is no number of GiB") from None
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"{option}: {text} is no amount of memory")
    return value


def _budget(targets_gib: list[float] | None, ram_gib: float | None) -> Budget:
    """Probes are asked only for what was not given: they may take a moment."""
    from dataclasses import replace

    from gpus_app.core.budget import budget_of, free_budget, recommended_ram_gib
    from gpus_app.core.gpu_set import gpu_set
    from gpus_app.core.probes import memory
    from gpus_app.core.probes.machine import read_machine
    from gpus_app.core.units import from_gib

    if targets_gib is None:
        machine = read_machine()
        free = free_budget(gpu_set(machine.devices), machine.memory)
        return free if ram_gib is None else replace(free, ram_bytes=from_gib(ram_gib))
    if ram_gib is None:
        ram_gib = recommended_ram_gib(memory.read()) or 0.0
    return budget_of(targets_gib, ram_gib)
