"""What a person pinned for one profile, from fields and launch text together; the text wins (sizing.md 11)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from models_app.core.catalog import Header
from models_app.core.launch.ownership import custom_text
from models_app.core.launch.pins import AUTO_LAYERS, Pins, pin_override, read_pins, slot_window
from models_app.core.launch.text_knobs import TextKnobs, read_text_knobs
from models_app.core.launch.tokens import POSIX
from models_app.core.planning.batch import slot_count
from models_app.core.planning.kv_types import KvPair, valid_kv_pair
from models_app.core.planning.launch_check import CACHE_TYPES
from models_app.core.planning.question import stepped
from models_app.core.planning.rope import rope_ceiling
from models_app.core.plans.launch_devices import ALONE, BY_LAYERS, split_mode
from models_app.core.settings import Override
from models_app.core.state.overrides import is_none

_CEILING = "The wanted window of {wanted:,} tokens is more than the model's {ceiling:,}; RoPE scaling would lift that."
_MIXED = "K in {k} and V in {v}: most builds have no fast attention kernel for such a pair."
_LARGEST_SHARE = 1e9
"""Llama.cpp adds shares up in single precision."""
_SPLIT = "the tensor split {text} is not one share of 0 or more for each of the {devices} devices"
_BEYOND = "The launch text asks for {wanted:,} tokens a slot, more than the model's {ceiling:,}."


@dataclass(frozen=True, slots=True)
class Pinned:
    """The pins of one profile. None is "not pinned". `gpu_layers` is the value of `-ngl`, the output included."""

    override: Override
    slots: int
    ceiling_tokens: int
    ctx: int | None = None
    gpu_layers: int | None = None
    cpu_moe_layers: int | None = None
    pair: KvPair | None = None
    tensor_split: tuple[float, ...] = ()
    batch: int | None = None
    kv_unified: bool = True
    knobs: frozenset[str] = frozenset()
    unjudged: str = ""
    """Why no figure could be trusted: the launch shares its layers as nobody can foresee."""
    warnings: tuple[str, ...] = ()


def pinned_of(header: Header, override: Override, devices: int, fleet_kv_type: str = "", rules: str = POSIX) -> Pinned:
    """The pins of a profile with this effective override on so many devices."""
    pins = read_pins(custom_text(override), rules)
    own = pin_override(override, pins)
    slots = slot_count(pins.parallel, own.parallel)
    ctx, ceiling, warnings = _window(header, own, pins, slots)
    gpu_layers, cpu_moe = _placement(header, own, pins)
    pair = _text_pair(pins) or _pair(own, fleet_kv_type)
    text = read_text_knobs(custom_text(override), rules)
    own = _with_text(own, text)
    split = split_of(own.tensor_split, devices)
    if pins.parallel is not None and pins.parallel > slots:
        warnings.append(f"The launch text asks for {pins.parallel:,} slots; plans go up to {slots}.")
    if pair is not None and pair.k != pair.v:
        warnings.append(_MIXED.format(k=pair.k, v=pair.v))
    warnings += _not_followed(own, devices, split_mode(override, rules))
    given = {
        "ctx": ctx is not None,
        "layers": gpu_layers is not None,
        "experts": cpu_moe is not None,
        "kv": pair is not None,
        "split": bool(split),
        "ubatch": own.ub > 0,
    }
    return Pinned(
        override=own,
        slots=slots,
        ceiling_tokens=ceiling,
        ctx=ctx,
        gpu_layers=gpu_layers,
        cpu_moe_layers=cpu_moe,
        pair=pair,
        tensor_split=split,
        batch=text.batch,
        kv_unified=text.kv_unified,
        knobs=frozenset(knob for knob, is_given in given.items() if is_given),
        unjudged=_split_problem(own.tensor_split, devices),
        warnings=tuple(warnings),
    )


def _not_followed(own: Override, devices: int, mode: str) -> list[str]:
    """What the launch says about memory and the estimate does not follow."""
    warnings = []
    if own.override_tensor.strip():
        warnings.append("Tensors are moved by -ot; the estimate does not follow that.")
    if devices > 1 and mode not in (ALONE, BY_LAYERS):
        text = f"The estimate shares whole layers among the devices and does not follow --split-mode {mode[:20]}."
        warnings.append(text)
    return warnings


def _with_text(own: Override, text: TextKnobs) -> Override:
    """Fields as the text leaves them."""
    return replace(
        own,
        flash_attn=text.flash_attn or own.flash_attn,
        swa_full=text.swa_full or own.swa_full,
        tensor_split=text.tensor_split or own.tensor_split,
        spec_draft_n_max=text.draft_tokens or own.spec_draft_n_max,
        kv_k_draft=text.draft_k or own.kv_k_draft,
        kv_v_draft=text.draft_v or own.kv_v_draft,
    )


def split_of(text: str, devices: int) -> tuple[float, ...]:
    """A hand-written ratio, () where it can't be one for so many devices."""
    try:
        shares = tuple(float(part) for part in text.replace("/", ",").split(",") if part.strip())
    except ValueError:
        return ()
    sound = len(shares) == devices > 1 and all(0 <= share <= _LARGEST_SHARE for share in shares) and sum(shares) > 0
    return shares if sound else ()


def _split_problem(text: str, devices: int) -> str:
    """Why a ratio that llama-server would get cannot be planned with, "" where there is none or it can."""
    if devices < 2 or not text.strip() or is_none(text) or split_of(text, devices):
        return ""
    return _SPLIT.format(text=text.strip()[:60], devices=devices)


def _window(header: Header, own: Override, pins: Pins, slots: int) -> tuple[int | None, int, list[str]]:
    """The pinned window of one slot, the ceiling of the search, and what to say about them."""
    exact = slot_window(pins.ctx, pins.parallel, slots) if pins.ctx is not None else None
    wanted = exact or own.ctx
    ceiling = rope_ceiling(own.rope_scaling, wanted, header.context_length)
    if wanted <= 0:
        return None, ceiling, []
    if exact is not None:
        return exact, ceiling, [_BEYOND.format(wanted=exact, ceiling=ceiling)] if exact > ceiling else []
    warnings = [_CEILING.format(wanted=wanted, ceiling=ceiling)] if wanted > ceiling else []
    return min(max(stepped(wanted), min(4096, ceiling)), ceiling), ceiling, warnings


def _placement(header: Header, own: Override, pins: Pins) -> tuple[int | None, int | None]:
    """Pinned `-ngl` and `--n-cpu-moe`. A field of n layers on the CPU leaves block count + 1 - n on the GPU."""
    blocks = header.block_count
    offload = min(max(0, own.cpu_offload), blocks)
    gpu_layers = cpu_moe = None
    if offload > 0:
        gpu_layers, cpu_moe = (None, offload) if header.is_moe else (blocks + 1 - offload, None)
    if pins.ngl is not None and pins.ngl != AUTO_LAYERS:
        gpu_layers = blocks + 1 if pins.ngl < AUTO_LAYERS else min(pins.ngl, blocks + 1)
    if pins.n_cpu_moe is not None and header.is_moe:
        cpu_moe = min(max(0, pins.n_cpu_moe), blocks)
    if cpu_moe is not None and gpu_layers is None:
        gpu_layers = blocks + 1
    return gpu_layers, cpu_moe


def _text_pair(pins: Pins) -> KvPair | None:
    """The pair that a launch text runs, a mixed one too; a side that it leaves open follows the other."""
    k, v = pins.kv_k or pins.kv_v, pins.kv_v or pins.kv_k
    return KvPair(k, v) if k in CACHE_TYPES and v in CACHE_TYPES else None


def _pair(own: Override, fleet_kv_type: str) -> KvPair | None:
    """The pinned pair; a mixed or unusable one pins nothing."""
    k, v = own.kv_k.strip() or own.kv_v.strip(), own.kv_v.strip() or own.kv_k.strip()
    if valid_kv_pair(k, v):
        return KvPair(k, v)
    return KvPair(fleet_kv_type, fleet_kv_type) if valid_kv_pair(fleet_kv_type, fleet_kv_type) else None
