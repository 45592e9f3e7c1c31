"""What a launch text pins for the sizer (launch.md 10). A text that cannot be split pins nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from models_app.core.catalog import Header
from models_app.core.errors import LaunchError
from models_app.core.launch.flag_table import read_words
from models_app.core.launch.llama_flags import LLAMA
from models_app.core.launch.tokens import POSIX, split_command
from models_app.core.planning.batch import LONG_WINDOW_TOKENS, slot_count
from models_app.core.planning.drafters import spec_chain

if TYPE_CHECKING:
    from models_app.core.settings import Override, Variant

AUTO_LAYERS = -1
"""`-ngl -1`: the server decides, so nothing is pinned."""
ALL_LAYERS = -2


@dataclass(frozen=True, slots=True)
class Pins:
    """Values read from a text; None and blank are "not pinned". `ctx` is the pool of all slots together."""

    ctx: int | None = None
    ngl: int | None = None
    n_cpu_moe: int | None = None
    parallel: int | None = None
    ub: int | None = None
    ctx_checkpoints: int | None = None
    checkpoint_min_step: int | None = None
    kv_k: str = ""
    kv_v: str = ""
    rope_scaling: str = ""
    kv_in_ram: bool = False
    spec: str = ""


@dataclass(frozen=True, slots=True)
class ProfilePins:
    """Pins as one profile takes them. `ctx` is the window of one slot, exact: it is not rounded.

    `cpu_offload` is None where nothing pins it; 0 is a real pin.
    """

    ctx: int | None = None
    is_long: bool = False
    cpu_offload: int | None = None
    kv_k: str = ""
    kv_v: str = ""
    ub: int | None = None
    spec: str = ""
    ctx_checkpoints: int | None = None
    checkpoint_min_step: int | None = None

    @property
    def ctx_exact(self) -> bool:
        return self.ctx is not None


def _integer(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _positive(text: str) -> int | None:
    number = _integer(text)
    return number if number is not None and number > 0 else None


def _layers(text: str) -> int | None:
    return ALL_LAYERS if text.lower() == "all" else _integer(text)


def _name(text: str) -> str:
    return "" if text.startswith("-") else text


_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "ctx": ("ctx", _positive),
    "ngl": ("ngl", _layers),
    "nCpuMoe": ("n_cpu_moe", _integer),
    "ctxCheckpoints": ("ctx_checkpoints", _integer),
    "parallel": ("parallel", _positive),
    "ub": ("ub", _positive),
    "checkpointMinStep": ("checkpoint_min_step", _positive),
    "kvK": ("kv_k", _name),
    "kvV": ("kv_v", _name),
    "ropeScaling": ("rope_scaling", _name),
}
"""Knob -> (attribute of `Pins`, reader of its value). The last occurrence counts, even when it is not valid."""


def read_pins(text: str, rules: str = POSIX) -> Pins:
    """The pins of a launch text."""
    try:
        return pins_of(split_command(text, rules))
    except LaunchError:
        return Pins()


def pins_of(tokens: list[str]) -> Pins:
    """The pins of the words of a command."""
    values: dict[str, Any] = {}
    chain: list[str] = []
    for knob, value in flag_values(tokens):
        if knob in _READERS:
            attribute, reader = _READERS[knob]
            values[attribute] = reader(value)
        elif knob == "spec" and _name(value):
            chain += spec_chain(value.replace(",", "+"))
        elif knob in ("--no-kv-offload", "--kv-offload"):
            values["kv_in_ram"] = knob == "--no-kv-offload"
    return Pins(spec="+".join(chain), **{key: value for key, value in values.items() if value is not None})


def flag_values(tokens: list[str]) -> list[tuple[str, str]]:
    """(knob, first value) of each known flag; a flag without value gives its canonical spelling and ""."""
    words = read_words(LLAMA, tokens)
    flags = []
    for index, word in enumerate(words):
        if word.row is None or word.flag is None:
            continue
        if word.row.values == 0:
            flags.append((word.row.canonical, ""))
            continue
        following = words[index + 1 : index + 2]
        value = word.flag.value if word.flag.inline else (following[0].text if following else "")
        flags.append((word.row.knob, value))
    return flags


def pin_override(override: Override, pins: Pins) -> Override:
    """The override as the sizer sees it under model-wide text. The stored one stays as it is."""
    values = _given(pins, "kv_k", "kv_v", "kv_in_ram", "ub", "spec", "rope_scaling")
    values |= _given(pins, "ctx_checkpoints", "checkpoint_min_step")
    if pins.parallel is not None:
        values["parallel"] = slot_count(pins.parallel)
    return replace(override, **values) if values else override


def pin_variant(variant: Variant, pins: Pins) -> Variant:
    """The fields of a variant that its own text sets for sizing beyond those of its profile."""
    values = _given(pins, "kv_in_ram", "rope_scaling")
    if pins.parallel is not None:
        values["parallel"] = slot_count(pins.parallel)
    return replace(variant, **values) if values else variant


def _given(pins: Pins, *names: str) -> dict[str, Any]:
    """The named pins that are set."""
    values = ((name, getattr(pins, name)) for name in names)
    return {name: value for name, value in values if value is not None and value != "" and value is not False}


def pin_profile(pins: Pins, header: Header, slots: int) -> ProfilePins:
    """The pins for one profile that plans with `slots` slots unless the text pins their number."""
    ctx = None if pins.ctx is None else slot_window(pins.ctx, pins.parallel, slots)
    return ProfilePins(
        ctx=ctx,
        is_long=ctx is not None and ctx >= LONG_WINDOW_TOKENS,
        cpu_offload=pinned_offload(pins, header),
        kv_k=pins.kv_k,
        kv_v=pins.kv_v,
        ub=pins.ub,
        spec=pins.spec,
        ctx_checkpoints=pins.ctx_checkpoints,
        checkpoint_min_step=pins.checkpoint_min_step,
    )


def slot_window(pool_tokens: int, pinned_slots: int | None, slots: int) -> int:
    """The window of one slot: the pool shared out, at least one token."""
    return max(1, pool_tokens // slot_count(pinned_slots, slots))


def pinned_offload(pins: Pins, header: Header) -> int | None:
    """Layers (dense) or expert layers (MoE) on the CPU, None where the text does not pin them.

    `-ngl` says nothing about the experts of a MoE, nor about a model whose block count is unknown.
    """
    blocks = header.block_count
    if header.is_moe:
        return None if pins.n_cpu_moe is None else max(0, min(pins.n_cpu_moe, blocks))
    if pins.ngl is None or pins.ngl == AUTO_LAYERS or blocks <= 0:
        return None
    return 0 if pins.ngl <= ALL_LAYERS else max(blocks - pins.ngl, 0)


def pin_estimate(form: Override, text: str, header: Header, rules: str = POSIX) -> tuple[Override, ProfilePins]:
    """A form's fields with the text laid over them, for an estimate: the text beats the form.

    The pins tell which values are exact; `cpu_offload` of the form stays where the text says nothing.
    """
    pins = read_pins(text, rules)
    pinned = pin_override(form, pins)
    profile = pin_profile(pins, header, slot_count(pinned.parallel))
    values: dict[str, Any] = {}
    if profile.ctx is not None:
        values["ctx"] = profile.ctx
    if profile.cpu_offload is not None:
        values["cpu_offload"] = profile.cpu_offload
    return replace(pinned, **values), profile
