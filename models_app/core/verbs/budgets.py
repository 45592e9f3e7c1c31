"""`--vram` and `--ram`: what planning may use of this machine."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from models_app.core.errors import UsageError
from models_app.core.verbs.knobs import plain_number

if TYPE_CHECKING:
    from gpus_app.core.budget import Budget

MAX_DEVICES = 16
"""Llama.cpp knows no more."""
MAX_GIB = 1e12


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Declare the two options."""
    parser.add_argument("--vram", type=_sizes, metavar="GiB[,GiB…]", help="target of each device (what is free)")
    parser.add_argument("--ram", type=_size, metavar="GiB", help="RAM budget; 0 for no limit (what is available)")


def budget_from(options: argparse.Namespace) -> Budget:
    """The budget that the options say; what they leave out is read from the machine. Raises `UsageError`."""
    check_targets(options.vram)
    from models_app.core.verbs.planning_run import budget_for

    return budget_for(options.vram, options.ram)


def check_targets(targets_gib: list[float] | None) -> None:
    """Raises `UsageError` for too many devices, and for one that nothing may be put on while others are used.

    A launch uses every device that its server sees, so such a device has to be hidden from it, not planned with 0.
    """
    if targets_gib is None:
        return
    if len(targets_gib) > MAX_DEVICES:
        raise UsageError(f"--vram names {len(targets_gib)} devices; at most {MAX_DEVICES}")
    if any(targets_gib) and not all(targets_gib):
        raise UsageError("--vram has a 0 among other sizes: leave that device out, and hide it from llama-server")


def _size(text: str) -> float:
    value = plain_number(text)
    if math.isnan(value) or not 0 <= value <= MAX_GIB:
        raise ValueError(text)
    return value


def _sizes(text: str) -> list[float]:
    return [_size(part) for part in text.split(",")]


_size.__name__ = "size in GiB"
_sizes.__name__ = "list of sizes in GiB"
