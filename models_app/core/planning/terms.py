"""The memory table of a plan: one term for each kind of memory, with the sentence behind "how?"."""

from __future__ import annotations

from collections.abc import Iterable

from models_app.core.catalog import MemoryTerm, MemoryUse, TermPart
from models_app.core.planning.projection import laid_out
from models_app.core.planning.question import Answer
from models_app.core.planning.room import CONVERTING
from models_app.core.planning.side_memory import (
    DRAFT_FILE_EXTRA_BYTES,
    BakedHead,
    checkpoint_count,
    one_checkpoint_bytes,
)
from models_app.core.planning.table import ModelTable
from models_app.core.planning.term_parts import compute_parts, context_parts, weight_parts
from models_app.core.planning.wishes import Excess, Wishes
from models_app.core.units import GIB, MIB


def memory_terms(
    table: ModelTable, wishes: Wishes, answer: Answer, head: BakedHead | None = None
) -> tuple[MemoryTerm, ...]:
    """All terms that are not zero; weights, cache and compute are always there. `head` is the own draft context."""
    run, stages = laid_out(table, answer.launch, cuda=wishes.budget.runtime in CONVERTING)
    loads = tuple(load.compute_bytes for load in answer.loads)
    terms = [
        _of_uses("weights", "Weights", answer, "model_bytes", _how_weights(table, answer), weight_parts(run, stages)),
        _of_uses("kv", "Context", answer, "context_bytes", _how_context(table, answer), context_parts(run, stages)),
        _of_uses(
            "compute",
            "Compute buffers",
            answer,
            "compute_bytes",
            _how_compute(table, wishes, answer),
            compute_parts(run, stages, loads, answer.host.compute_bytes),
        ),
    ]
    extras = [_projector(wishes), _drafter(wishes, answer, head), _checkpoints(table, wishes, answer)]
    extras += [_runtime(wishes), _headroom(wishes), _excess(wishes)]
    return tuple(terms + [term for term in extras if term and (term.ram_bytes or any(term.device_bytes))])


def _of_uses(key: str, label: str, answer: Answer, attribute: str, how: str, parts: Iterable[TermPart]) -> MemoryTerm:
    devices = tuple(_figure(device, attribute) for device in answer.loads)
    return MemoryTerm(key, label, devices, _figure(answer.host, attribute), how, tuple(parts))


def _figure(use: MemoryUse, attribute: str) -> int:
    value: int = getattr(use, attribute)
    return value


def _how_weights(table: ModelTable, answer: Answer) -> str:
    first = table.blocks + 1 - min(answer.step.gpu_layers, table.blocks + 1)
    if not answer.loads or answer.step.gpu_layers == 0:
        text = f"All {table.blocks} blocks in RAM"
    elif first == 0:
        text = f"All {table.blocks} blocks and the output on the GPU"
    elif first >= table.blocks:
        text = "Only the output on the GPU"
    else:
        text = f"Blocks {first} to {table.blocks - 1} and the output on the GPU"
    if answer.step.cpu_moe_layers and table.is_moe:
        text += f", the experts of the first {answer.step.cpu_moe_layers} blocks in RAM"
    return f"{text}; bytes of the tensors, the token embedding always in RAM."


def _how_context(table: ModelTable, answer: Answer) -> str:
    launch = answer.launch
    text = f"{launch.ctx_tokens:,} cells"
    if launch.slots > 1:
        text += f" shared by {launch.slots} slots"
    if table.window:
        text += f", sliding layers {table.window:,} tokens and one micro-batch"
    text += f"; K in {launch.type_k}" + ("" if table.latent else f", V in {launch.type_v}")
    sharing = table.sums.uses_full[-1] + table.sums.uses_sliding[-1]
    sharing -= table.sums.owns_full[-1] + table.sums.owns_sliding[-1]
    if sharing > 0:
        text += f"; {sharing} layers have none of their own and read those of earlier ones"
    if table.is_recurrent:
        copies = launch.slots * (1 + (launch.rollback_snapshots if table.rolls_back else 0))
        states = "1 recurrent state, which does" if copies == 1 else f"{copies} recurrent states, which do"
        text += f"; {states} not grow with the window"
    return f"{text}."


def _how_compute(table: ModelTable, wishes: Wishes, answer: Answer) -> str:
    launch = answer.launch
    text = (
        f"The largest step of the graph for a micro-batch of {min(launch.ubatch, launch.ctx_tokens):,} tokens at width"
        f" {table.embedding:,}, and a mask over {launch.ctx_tokens:,} cells"
    )
    plain = sum(device.compute_bytes for device in answer.projection.devices)
    extra = sum(device.compute_bytes for device in answer.loads) - plain
    if extra >= MIB // 2:
        text += f"; {extra / MIB:,.0f} MiB of it for {_extra_causes(wishes, answer)}"
    return f"{text}."


def _extra_causes(wishes: Wishes, answer: Answer) -> str:
    causes = []
    if wishes.budget.runtime in CONVERTING:
        causes.append(f"what a {wishes.budget.runtime.upper()} device adds")
    if answer.launch.draft_tokens:
        causes.append(f"logits of {answer.launch.draft_tokens:,} drafted tokens")
    if wishes.compute_factor > 1:
        causes.append("your safety factor")
    return ", ".join(causes)


def _projector(wishes: Wishes) -> MemoryTerm | None:
    projector = wishes.companions.projector
    if projector is None:
        return None
    place = None if projector.in_ram else _main_device(wishes)
    how = f"The projector of the profile, {'in RAM' if place is None else 'on the main device'}."
    parts = (
        TermPart(place, "file", projector.file_bytes),
        TermPart(place, "its compute buffer", projector.clip_bytes),
    )
    return _placed("projector", "Projector", wishes, parts, how)


def _drafter(wishes: Wishes, answer: Answer, head: BakedHead | None) -> MemoryTerm | None:
    file_bytes, place = wishes.companions.draft_file_bytes, _main_device(wishes)
    if head is not None:
        how = "The model's own draft blocks, their cache for the same window, and a compute buffer of their own."
        parts = head.parts_at(answer.placement.ctx_tokens, answer.pair, place)
    elif file_bytes:
        how = "The paired draft model; its cache and compute buffer are a flat figure."
        extra = TermPart(place, "its cache and compute buffer", DRAFT_FILE_EXTRA_BYTES)
        parts = (TermPart(place, "file", file_bytes), extra)
    else:
        return None
    return _placed("drafter", "Drafter", wishes, parts, how)


def _checkpoints(table: ModelTable, wishes: Wishes, answer: Answer) -> MemoryTerm:
    window, slots = answer.placement.ctx_tokens, answer.launch.slots
    one = one_checkpoint_bytes(table, window, answer.pair)
    count = checkpoint_count(wishes.companions.checkpoints, window)
    factors = ((count, "checkpoints"), (slots, "slots" if slots > 1 else "slot"), (one, "bytes"))
    part = TermPart(None, "copies of what slides or recurs", count * slots * one, factors)
    how = f"Up to {count} checkpoints of {one / MIB:,.1f} MiB for each slot, always in RAM."
    return _placed("checkpoints", "Context checkpoints", wishes, (part,), how)


def _runtime(wishes: Wishes) -> MemoryTerm:
    budget = wishes.budget
    how = f"Driver and libraries of one {budget.runtime.upper()} process: {_gib(budget.runtime_bytes)} on every device."
    return _placed("runtime", "Runtime", wishes, _on_every_device(wishes, "a process", budget.runtime_bytes), how)


def _headroom(wishes: Wishes) -> MemoryTerm:
    how = f"Kept free: {_gib(wishes.headroom_bytes)} on every device."
    return _placed("headroom", "Headroom", wishes, _on_every_device(wishes, "kept free", wishes.headroom_bytes), how)


def _excess(wishes: Wishes) -> MemoryTerm:
    excess = wishes.excess
    parts: tuple[TermPart, ...] = ()
    if excess.device_bytes:
        parts += _on_every_device(wishes, "held beyond the projection", excess.device_bytes)
    if excess.ram_bytes:
        parts += (TermPart(None, "held beyond the projection", excess.ram_bytes),)
    how = f"{excess_text(excess)}: kept free on top of the headroom."
    return _placed("measured", "Measured extra", wishes, parts, how)


def excess_text(excess: Excess) -> str:
    """What was measured, as a sentence without its end."""
    places = [f"{excess.device_bytes / MIB:,.0f} MiB (on a device)"] if excess.device_bytes else []
    places += [f"{excess.ram_bytes / MIB:,.0f} MiB (in RAM)"] if excess.ram_bytes else []
    return f"llama.cpp measured {' and '.join(places)} more than projected on build {excess.build or 'unknown'}"


def _on_every_device(wishes: Wishes, label: str, size_bytes: int) -> tuple[TermPart, ...]:
    return tuple(TermPart(number, label, size_bytes) for number in range(len(wishes.budget.device_bytes)))


def _main_device(wishes: Wishes) -> int | None:
    """Where companions go: the last device, or RAM without one."""
    return len(wishes.budget.device_bytes) - 1 if wishes.budget.device_bytes else None


def _placed(key: str, label: str, wishes: Wishes, parts: tuple[TermPart, ...], how: str) -> MemoryTerm:
    """A term that is the sum of its parts."""
    devices = [0] * len(wishes.budget.device_bytes)
    ram = 0
    for part in parts:
        if part.device is None:
            ram += part.size_bytes
        else:
            devices[part.device] += part.size_bytes
    return MemoryTerm(key, label, tuple(devices), ram, how, parts)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.2f} GiB"
