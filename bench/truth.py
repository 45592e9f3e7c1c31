"""Our projections against llama.cpp's own, on every published model measured: errors of the compute buffers in MiB.

The same figures, laid out for docs/memory-model.md, come from `python -m tests.truth_table`.
"""

from __future__ import annotations

import tempfile
from typing import Any

from models_app.core.readers import read_header
from tests import truth_table


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Median, 95th percentile and worst error per architecture class and column; `quick`: of the first table alone."""
    names = truth_table.MODELS + ([] if quick else truth_table.MORE_MODELS)
    with tempfile.TemporaryDirectory() as folder:
        headers = {name: read_header(truth_table.write(name, folder)) for name in names}
    points = truth_table.compute_points(headers.__getitem__, [] if quick else truth_table.MORE_ROWS)
    points += truth_table.compute_points(headers.__getitem__)
    rows = []
    for outputs, program in (("server", "llama-server"), ("all", "llama-fit-params")):
        chosen = [point for point in points if point.outputs == outputs]
        for kind in sorted({truth_table.kind_of(point.model) for point in chosen}):
            errors = sorted(abs(point.error) for point in chosen if truth_table.kind_of(point.model) == kind)
            for name, value in (
                ("median", errors[len(errors) // 2]),
                ("95 %", errors[int(0.95 * len(errors))]),
                ("worst", errors[-1]),
            ):
                rows.append({"name": f"{program}, {kind}, {name}", "value": value, "unit": "MiB"})
        off = sum(not (point.in_aim and point.not_under) for point in chosen)
        share = 100 * off / len(chosen)
        rows.append({"name": f"{program}, outside of the aims", "value": share, "unit": "%", "limit": 1.0})
    return rows
