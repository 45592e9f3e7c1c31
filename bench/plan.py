"""Planning every model of the zoo, against one projection of the same model in the same run."""

from __future__ import annotations

import statistics
import time
from typing import Any

from bench.zoo_tree import zoo_tree
from gpus_app.core.budget import budget_of
from models_app.core.catalog import Launch
from models_app.core.planning.projection import project
from models_app.core.planning.table import model_table
from models_app.core.plans import plan_row
from models_app.core.readers import read_header
from models_app.core.settings import Override, Settings
from models_app.core.verbs.planning_run import row_of


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Median and slowest plan of a model with a cached header, and one projection as the unit."""
    rounds = 1 if quick else 5
    budget = budget_of((24.0,), 64.0)
    settings = Settings(target_vram_gb=24.0, max_ram_gb=64.0)
    plans, projections = [], []
    with zoo_tree() as folder:
        for path in sorted(folder.glob("*.gguf")):
            if "-of-" in path.name and "-00001-of-" not in path.name:
                continue
            header = read_header(str(path))
            row = row_of(str(path), header)
            table = model_table(header)
            for _ in range(rounds):
                started = time.process_time()
                plan_row(row, header, settings=settings, override=Override(), budget=budget, headers=lambda _: None)
                plans.append(time.process_time() - started)
                started = time.process_time()
                project(table, Launch(ctx_tokens=32768))
                projections.append(time.process_time() - started)
    unit = statistics.median(projections)
    return [
        _row("plan of one model, median", statistics.median(plans), unit) | {"limit_value": 3.0},
        _row("plan of one model, slowest", max(plans), unit),
        {
            "name": "1,000 models of 4 profiles, at this mean",
            "value": statistics.mean(plans) * 4000,
            "unit": "s",
            "limit_value": 12.0,
        },
        {"name": "one projection, median", "value": unit * 1000, "unit": "ms"},
    ]


def _row(name: str, seconds: float, unit: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": seconds * 1000,
        "unit": "ms",
        "baseline": "one projection",
        "ratio": seconds / unit,
        "limit": None,
    }
