"""Which cache types a plan may choose for a model, best first."""

from __future__ import annotations

from models_app.core.catalog import Launch
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.launch_check import model_problem
from models_app.core.planning.model_facts import ModelTable

FULL = KvPair("f16", "f16")
SMALLER = KvPair("q8_0", "q8_0")


def usable_pairs(table: ModelTable, flash_attn: bool) -> tuple[KvPair, ...]:
    """f16, and q8_0 below it where the model can run with it and would gain something."""
    return (FULL, SMALLER) if flash_attn and _gains(table) and _runs(table, SMALLER) else (FULL,)


def _gains(table: ModelTable) -> bool:
    """Has a cache at all."""
    return table.sums.k_full[-1] + table.sums.k_sliding[-1] > 0


def _runs(table: ModelTable, pair: KvPair) -> bool:
    return not model_problem(table, Launch(ctx_tokens=1, type_k=pair.k, type_v=pair.v))
