"""The formulas of plans beside llama.cpp's work done again, over launches at random; no measured launch is needed.

python -m tests.formula_grid           prints the errors per architecture, as Markdown (some minutes)
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from models_app.core.catalog import Launch
from models_app.core.planning.compute import device_compute, host_compute
from models_app.core.planning.projection import laid_out
from models_app.core.planning.replay.replayed import replayed_compute
from models_app.core.planning.table import ModelTable, model_table
from models_app.core.readers import read_header
from models_app.core.units import MIB
from tests import truth_table

PER_MODEL = 40
USUAL_UBATCH = 1024
"""Up to this, micro-batches are what people use; errors grow with them."""


class Figure(NamedTuple):
    """The compute buffer of one place: the formula's error, and what was played, in MiB."""

    model: str
    launch: Launch
    on_device: bool
    error: float
    played: float

    @property
    def is_under(self) -> bool:
        return self.error < -max(16.0, 0.02 * self.played)

    @property
    def in_aim(self) -> bool:
        """As for measured launches: within 3 % or 32 MiB, and not under by 2 % or 16 MiB."""
        return self.error <= max(32.0, 0.03 * self.played) and not self.is_under


def figures(model: str, table: ModelTable, launch: Launch) -> Iterator[Figure]:
    """Of every device and the host; nothing where the graph is not known."""
    run, stages = laid_out(table, launch)
    played = replayed_compute(run, stages)
    ours = [*(device_compute(run, stage) for stage in stages), host_compute(run)]
    for place, (one, two) in enumerate(zip(ours, played or (), strict=played is not None)):
        yield Figure(model, launch, place < len(stages), (one - two) / MIB, two / MIB)


def grid(model: str, table: ModelTable, count: int) -> Iterator[Launch]:
    """Launches at random, the same every time: any window, slots, cache, boundary, up to three devices."""
    pick = Random(model)
    for _ in range(count):
        slots, unified = pick.choice([(1, False), (1, False), (4, True), (4, False), (8, True)])
        cache, devices = pick.choice(["f16", "f16", "q8_0", "q4_0"]), pick.choice([1, 1, 1, 2, 2, 3])
        kind = pick.choice(["all", "layers", "experts" if table.is_moe else "all"])
        shares = tuple(float(pick.randint(1, 9)) for _ in range(devices)) if devices > 1 and pick.random() < 0.5 else ()
        yield Launch(
            pick.choice([4096, 8192, 16384, 32768, 65536, 131072]),
            ubatch=pick.choice([128, 512, 512, 512, 1024, 2048, 4096]),
            type_k=cache,
            type_v=cache,
            slots=slots,
            kv_unified=unified,
            devices=devices,
            tensor_split=shares,
            gpu_layers=pick.randint(0, table.blocks) if kind == "layers" else None,
            cpu_moe_layers=pick.randint(1, table.blocks) if kind == "experts" else 0,
        )


def error_table(found: dict[str, list[Figure]]) -> str:
    """Architectures that miss the aims with more than 1 % of the figures of usual micro-batches, and all of them."""
    lines = ["| architecture | figures | out of aim | too low | lowest, highest (MiB) |", "|---|---|---|---|---|"]
    everything = [figure for group in found.values() for figure in group]
    usual = {name: [one for one in group if one.launch.ubatch <= USUAL_UBATCH] for name, group in found.items()}
    for name, group in sorted(usual.items(), key=lambda item: _share(item[1]), reverse=True):
        if _share(group) > 1:
            lines.append(_line(name, group))
    lines.append(_line(f"all {len(found)}", [figure for group in usual.values() for figure in group]))
    lines.append(_line("all, micro-batches up to 4,096", everything))
    return "\n".join(lines)


def _share(group: list[Figure]) -> float:
    return 100 * sum(not figure.in_aim for figure in group) / len(group)


def _line(name: str, group: list[Figure]) -> str:
    under = 100 * sum(figure.is_under for figure in group) / len(group)
    errors = [figure.error for figure in group]
    return (
        f"| {name} | {len(group):,} | {_share(group):.1f} % | {under:.1f} % | {min(errors):.0f}, {max(errors):+.0f} |"
    )


def main() -> None:
    found: dict[str, list[Figure]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for model in truth_table.MODELS + truth_table.MORE_MODELS + truth_table.VARIANT_MODELS:
            table = model_table(read_header(truth_table.write(model, folder)))
            for launch in grid(model, table, PER_MODEL if table.shape else 0):
                found[table.architecture] += figures(model, table, launch)
    print(error_table({name: group for name, group in found.items() if group}))


if __name__ == "__main__":
    main()
