"""llama.cpp's own projection beside ours: reading what llama-fit-params prints, and the difference of each figure.

The program prints a line for each device and one for the host: name, model, context and compute in MiB, each rounded
down. It sets the context up so that every token of a micro-batch may return logits, so our side is projected with
`outputs="all"`; weights and context do not depend on that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from models_app.core.catalog import Launch, MemoryUse, Placement, Projection
from models_app.core.errors import VerifyError
from models_app.core.planning.projection import HOST
from models_app.core.units import MIB

_SIZE = re.compile(r"[0-9]{1,9}")
_VERSION = "version:"
_STREAMING = ("cuda", "rocm", "hip")
"""How the names begin of devices that copy host weights in and convert quantised caches (compute-buffer.md 6)."""
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Measured:
    """What llama-fit-params printed, in bytes: whole MiB. Devices carry the names that the backend gives them."""

    devices: tuple[MemoryUse, ...]
    host: MemoryUse


@dataclass(frozen=True, slots=True)
class Comparison:
    """Measured figures and measured minus projected, per place and term; negative where we project too much.

    A difference counts whole MiB, as the measured side does: 0 says that ours rounds to the figure printed.
    """

    measured: Measured
    difference: Measured
    agreement_percent: float
    """The sum of all differences, whatever their sign, over all that was measured. 0 is perfect."""


def parse_fit_params(text: str) -> Measured:
    """The figures in the standard output of `llama-fit-params --fit-print on`. Other lines are passed over.

    Raises VerifyError for a text without a host line, or with one that is not the last.
    """
    uses = [use for line in text.splitlines() if (use := _use(line))]
    hosts = [position for position, use in enumerate(uses) if use.name == HOST]
    if not uses or hosts != [len(uses) - 1]:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        seen = f"it begins {first[:_SHOWN_CHARACTERS]!r}" if first else "it is empty"
        raise VerifyError("unreadable", f"the answer of llama-fit-params holds no memory figures: {seen}")
    return Measured(tuple(uses[:-1]), uses[-1])


def _use(line: str) -> MemoryUse | None:
    name, *sizes = line.rsplit(None, 3) or [""]
    if len(sizes) != 3 or len(name) > _SHOWN_CHARACTERS or not all(map(_SIZE.fullmatch, sizes)):
        return None
    name = name.strip()
    model, context, compute = (int(size) * MIB for size in sizes)
    return MemoryUse(HOST if name.lower() == HOST else name, model, context, compute)


def parse_version(text: str) -> str:
    """The build in the answer to `--version`, "" where there is none."""
    lines = (line.strip() for line in text.splitlines())
    found = next((line for line in lines if line.startswith(_VERSION)), "")
    return found.removeprefix(_VERSION).strip()[:_SHOWN_CHARACTERS]


def streams_weights(measured: Measured) -> bool:
    """Whether the devices add what `project(..., cuda=True)` adds."""
    return any(device.name.lower().startswith(_STREAMING) for device in measured.devices)


def fit_params_launch(placement: Placement, devices: int, *, flash_attn: bool, swa_full: bool) -> Launch:
    """The launch that llama-fit-params makes of a plan's command: no drafts, no embeddings, and a part of the pool
    per slot, because the flag for one pool is unknown to it.
    """
    return Launch(
        ctx_tokens=placement.ctx_tokens * placement.slots,
        ubatch=placement.ubatch,
        batch=placement.batch,
        type_k=placement.type_k,
        type_v=placement.type_v,
        slots=placement.slots,
        kv_unified=placement.slots == 1,
        flash_attn=flash_attn,
        swa_full=swa_full,
        kv_offload=not placement.kv_in_ram,
        gpu_layers=placement.gpu_layers,
        cpu_moe_layers=placement.cpu_moe_layers,
        devices=devices,
        tensor_split=placement.tensor_split,
        outputs="all",
    )


def compare(measured: Measured, projected: Projection) -> Comparison:
    """Devices are matched by their order. Raises VerifyError where their numbers differ."""
    seen, planned = len(measured.devices), len(projected.devices)
    if seen != planned:
        raise VerifyError(
            "devices",
            f"llama.cpp uses {_counted(seen)}, the plan is for {planned}; both must have the same ones",
        )
    difference = Measured(
        tuple(_minus(ours, theirs) for ours, theirs in zip(measured.devices, projected.devices, strict=True)),
        _minus(measured.host, projected.host),
    )
    total = sum(use.total_bytes for use in (*measured.devices, measured.host))
    off = sum(map(_deviation, (*difference.devices, difference.host)))
    return Comparison(measured, difference, round(100 * off / total, 2) if total else 0.0)


def _counted(devices: int) -> str:
    return f"{devices or 'no'} device{'' if devices == 1 else 's'}"


def _minus(measured: MemoryUse, projected: MemoryUse) -> MemoryUse:
    return MemoryUse(
        measured.name,
        measured.model_bytes - _whole(projected.model_bytes),
        measured.context_bytes - _whole(projected.context_bytes),
        measured.compute_bytes - _whole(projected.compute_bytes),
    )


def _whole(size_bytes: int) -> int:
    return size_bytes // MIB * MIB


def _deviation(difference: MemoryUse) -> int:
    return abs(difference.model_bytes) + abs(difference.context_bytes) + abs(difference.compute_bytes)
