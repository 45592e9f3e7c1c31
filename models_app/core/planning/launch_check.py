"""What llama.cpp would refuse to start, said before anything is computed."""

from __future__ import annotations

import math

from models_app.core.catalog import Launch
from models_app.core.planning.kv_types import LAUNCHABLE_TYPES, QUANTISED_TYPES
from models_app.core.planning.model_facts import ModelTable

CACHE_TYPES = (*LAUNCHABLE_TYPES, "iq4_nl")
"""What the server's parser takes; `kv_types` says which of them a plan may choose."""
QUANT_BLOCK = 32
LEAST_SHARES = 1e-30
"""Shares are single-precision numbers; smaller ones are 0 there."""
MAX_SLOTS = 256
MAX_DEVICES = 16
MAX_TOKENS = (1 << 31) - 1


def knob_problem(launch: Launch) -> str:
    """Why no model can be started like this, "" when one can."""
    bounds = (
        ("ctx", launch.ctx_tokens, 1, MAX_TOKENS),
        ("ub", launch.ubatch, 1, MAX_TOKENS),
        ("b", launch.batch, 1, MAX_TOKENS),
        ("parallel", launch.slots, 1, MAX_SLOTS),
        ("ngl", 0 if launch.gpu_layers is None else launch.gpu_layers, 0, MAX_TOKENS),
        ("n-cpu-moe", launch.cpu_moe_layers, 0, MAX_TOKENS),
        ("devices", launch.devices, 0, MAX_DEVICES),
    )
    for name, value, least, most in bounds:
        if not least <= value <= most:
            return f"{name} must be between {least:,} and {most:,}, not {value:,}"
    for name, kv_type in (("ctk", launch.type_k), ("ctv", launch.type_v)):
        if kv_type not in CACHE_TYPES:
            return f"{name} must be one of {', '.join(CACHE_TYPES)}, not {kv_type!r}"
    if launch.outputs not in ("server", "all"):
        return f"outputs must be server or all, not {launch.outputs!r}"
    return _cache_problem(launch) or _split_problem(launch)


def model_problem(table: ModelTable, launch: Launch) -> str:
    """Why this model can't be started like this, "" when it can."""
    if problem := _cache_problem(launch):
        return problem
    if table.latent and launch.type_k != launch.type_v:
        return "this model caches one compressed row for K and V together, so ctk and ctv must be equal"
    if launch.type_v in QUANTISED_TYPES and not table.rules.flash:
        return f"a {launch.type_v} V cache needs flash attention, which {table.architecture} has none of"
    for name, kv_type, lengths in (
        ("ctk", launch.type_k, {item.key_length for item in table.working_sets if item.kv_heads}),
        ("ctv", launch.type_v, {item.value_length for item in table.working_sets if item.kv_heads}),
    ):
        odd = sorted(length for length in lengths if length % QUANT_BLOCK)
        if odd and kv_type in QUANTISED_TYPES and table.rules.has_cache:
            return f"{name} {kv_type} needs head lengths in multiples of {QUANT_BLOCK}; this model has {odd[0]}"
    return ""


def _cache_problem(launch: Launch) -> str:
    if launch.type_v in QUANTISED_TYPES and not launch.flash_attn:
        return f"a {launch.type_v} V cache needs flash attention"
    return ""


def _split_problem(launch: Launch) -> str:
    shares = launch.tensor_split
    if not shares:
        return ""
    if len(shares) != launch.devices:
        return f"tensor-split needs one share for each device ({launch.devices}), not {len(shares)}"
    if not all(math.isfinite(share) and 0 <= share < 1e30 for share in shares):
        return "tensor-split shares must be numbers from 0 up"
    if sum(shares) < LEAST_SHARES:
        return "tensor-split needs one share above 0"
    return ""
