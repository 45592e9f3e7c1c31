"""The knobs of a launch as words of a command line and as keys of a JSON object; every one of them may be left out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from models_app.core.errors import UsageError

if TYPE_CHECKING:
    from models_app.core.catalog import Launch

FIELDS = {
    "ctx": "ctx_tokens",
    "ub": "ubatch",
    "b": "batch",
    "ctk": "type_k",
    "ctv": "type_v",
    "parallel": "slots",
    "kv_unified": "kv_unified",
    "ngl": "gpu_layers",
    "n_cpu_moe": "cpu_moe_layers",
    "devices": "devices",
    "tensor_split": "tensor_split",
    "fa": "flash_attn",
    "outputs": "outputs",
}
"""Knob -> field of `Launch`."""

_NUMBERS = {"ctx", "ub", "b", "parallel", "n_cpu_moe", "devices"}
_TEXTS = {"ctk", "ctv", "outputs"}


def add_knobs(parser: argparse.ArgumentParser, *, searched: bool = False) -> None:
    """One option for each knob; an option that is not given leaves None: its default, or where the rest is
    `searched`, what the search finds."""
    group = parser.add_argument_group("launch", "pins; what is left out is searched" if searched else None)

    def default(text: str) -> str:
        return "" if searched else f" ({text})"

    group.add_argument("--ctx", type=whole_number, metavar="N", help="value of -c, the whole pool of all slots")
    group.add_argument("--ub", type=whole_number, metavar="N", help=f"micro-batch{default('512')}")
    group.add_argument("-b", type=whole_number, metavar="N", help=f"batch{default('2048')}")
    group.add_argument("--ctk", metavar="T", help=f"type of the K cache{default('f16')}")
    group.add_argument("--ctv", metavar="T", help=f"type of the V cache{default('f16')}")
    group.add_argument("--parallel", type=whole_number, metavar="N", help=f"slots{default('1')}")
    unified = group.add_mutually_exclusive_group()
    unified.add_argument("--kv-unified", action="store_true", default=None, help="one pool for all slots (the default)")
    unified.add_argument(
        "--no-kv-unified", dest="kv_unified", action="store_false", default=None, help="a part of the pool per slot"
    )
    group.add_argument(
        "--ngl", type=_layers, metavar="N|all", help=f"layers on the devices, the output included{default('all')}"
    )
    group.add_argument(
        "--n-cpu-moe", type=whole_number, metavar="N", help=f"experts of the first N layers stay in RAM{default('0')}"
    )
    group.add_argument("--devices", type=whole_number, metavar="N", help=f"number of devices{default('1')}")
    group.add_argument("--tensor-split", type=_shares, metavar="A,B…", help=f"shares of the devices{default('equal')}")
    group.add_argument("--fa", choices=("on", "off"), help=f"flash attention{default('on')}")
    group.add_argument(
        "--outputs", choices=("server", "all"), help="rows of logits: as llama-server or llama-fit-params"
    )


def given_knobs(options: argparse.Namespace) -> dict[str, Any]:
    """The knobs that were given, by name."""
    return {name: value for name in FIELDS if (value := getattr(options, name)) is not None}


def launch_of(knobs: Mapping[str, Any]) -> Launch:
    """A launch with these knobs; None and absent ones take the default. Raises UsageError."""
    unknown = sorted(set(knobs) - set(FIELDS))
    if unknown:
        raise UsageError(f"unknown knob {unknown[0]!r}")
    fields = {FIELDS[name]: _value(name, value) for name, value in knobs.items() if value is not None}
    if "ctx_tokens" not in fields:
        raise UsageError("ctx is missing")
    from models_app.core.catalog import Launch
    from models_app.core.planning.launch_check import knob_problem

    launch = Launch(**fields)
    problem = knob_problem(launch)
    if problem:
        raise UsageError(problem)
    return launch


def _value(name: str, value: Any) -> Any:
    """A knob's value with the type that `Launch` wants."""
    if name in _NUMBERS:
        return _integer(name, value)
    if name in _TEXTS:
        return _checked(name, value, isinstance(value, str), "text")
    if name == "ngl":
        return None if value == "all" else _integer(name, value, 'a whole number or "all"')
    if name == "kv_unified":
        return _checked(name, value, isinstance(value, bool), "true or false")
    if name == "fa":
        _checked(name, value, isinstance(value, bool) or value in ("on", "off"), "on or off")
        return value in (True, "on")
    is_list = isinstance(value, list | tuple) and len(value) > 0
    is_list = is_list and all(isinstance(share, int | float) and not isinstance(share, bool) for share in value)
    return tuple(map(_share, _checked(name, value, is_list, "a list of numbers")))


def _integer(name: str, value: Any, wanted: str = "a whole number") -> int:
    number: int = _checked(name, value, isinstance(value, int) and not isinstance(value, bool), wanted)
    return number


def _checked(name: str, value: Any, fits: bool, wanted: str) -> Any:
    if not fits:
        raise UsageError(f"{name} must be {wanted}")
    return value


def _share(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def whole_number(text: str) -> int:
    """A number in plain digits. `int` alone would take those of any script, and underscores between them."""
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return int(text)


def plain_number(text: str) -> float:
    """The same for numbers with a fraction."""
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return float(text)


def _layers(text: str) -> int | str:
    return text if text == "all" else whole_number(text)


def _shares(text: str) -> list[float]:
    return [plain_number(part) for part in text.split(",")]


whole_number.__name__ = "whole number"
plain_number.__name__ = "number"
_layers.__name__ = "number or all"
_shares.__name__ = "list of numbers"
