"""Reads a stored launch command back: its model, and what it says about placement (launch.md 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models_app.core.catalog import Header
from models_app.core.launch.paths import forward
from models_app.core.launch.pins import Pins, pinned_offload, pins_of
from models_app.core.launch.tokens import split_flag_token

MODEL_FLAGS = frozenset({"-m", "--model", "--model-path", "--diffusion-model"})


@dataclass(frozen=True, slots=True)
class StoredPlacement:
    """What a running command says. `ctx` is the pool, used exactly; `ctx_checkpoints` is None when absent."""

    ctx: int
    ctx_checkpoints: int | None
    kv_in_ram: bool
    kv_k: str
    kv_v: str
    spec: str
    pins: Pins


def model_path(argv: Sequence[str]) -> str:
    """The model that a command serves: the first model flag's value, else the word after `serve`; "" if none."""
    for index, token in enumerate(argv):
        flag = split_flag_token(token)
        if flag.name in MODEL_FLAGS:
            value = flag.value if flag.inline else next(iter(argv[index + 1 : index + 2]), "")
            return forward(value)
    if "serve" in argv:
        return forward(next(iter(argv[argv.index("serve") + 1 :]), ""))
    return ""


def placement_of(argv: Sequence[str]) -> StoredPlacement:
    """The placement facts of a llama-server command."""
    pins = pins_of(list(argv))
    return StoredPlacement(
        ctx=pins.ctx or 0,
        ctx_checkpoints=pins.ctx_checkpoints,
        kv_in_ram=pins.kv_in_ram,
        kv_k=pins.kv_k,
        kv_v=pins.kv_v,
        spec=pins.spec,
        pins=pins,
    )


def offload_of(argv: Sequence[str], header: Header) -> int | None:
    """Layers or expert layers that a command keeps on the CPU; None where no flag of the model's kind says so."""
    return pinned_offload(pins_of(list(argv)), header)
