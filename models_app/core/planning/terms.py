"""The memory table of a plan: one term for each kind of memory, with the sentence behind "how?"."""

from __future__ import annotations

from models_app.core.catalog import MemoryTerm, MemoryUse
from models_app.core.planning.question import Answer
from models_app.core.planning.side_memory import DRAFT_FILE_EXTRA_BYTES, one_checkpoint_bytes
from models_app.core.planning.table import ModelTable
from models_app.core.planning.wishes import Wishes, checkpoint_ram_bytes
from models_app.core.units import GIB, MIB


def memory_terms(table: ModelTable, wishes: Wishes, answer: Answer) -> tuple[MemoryTerm, ...]:
    """All terms that are not zero; weights, cache and compute are always there."""
    terms = [
        _of_uses("weights", "Weights", answer, "model_bytes", _how_weights(table, answer)),
        _of_uses("kv", "Context", answer, "context_bytes", _how_context(table, answer)),
        _of_uses("compute", "Compute buffers", answer, "compute_bytes", _how_compute(table, wishes, answer)),
    ]
    extras = [_projector(wishes), _drafter(wishes, answer), _checkpoints(table, wishes, answer)]
    extras += [_runtime(wishes), _headroom(wishes)]
    return tuple(terms + [term for term in extras if term and (term.ram_bytes or any(term.device_bytes))])


def _of_uses(key: str, label: str, answer: Answer, attribute: str, how: str) -> MemoryTerm:
    devices = tuple(_figure(device, attribute) for device in answer.loads)
    return MemoryTerm(key, label, devices, _figure(answer.host, attribute), how)


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
    if table.is_recurrent:
        copies = launch.slots * (1 + (launch.rollback_snapshots if table.rolls_back else 0))
        text += f"; {copies} recurrent state(s), which do not grow with the window"
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
    if wishes.budget.runtime in ("cuda", "rocm"):
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
    on_gpu = not projector.in_ram and bool(wishes.budget.device_bytes)
    how = (
        f"File {_gib(projector.file_bytes)} and its compute buffer {_gib(projector.clip_bytes)}, "
        f"{'on the main device' if on_gpu else 'in RAM'}."
    )
    return _placed("projector", "Projector", wishes, projector.total_bytes, on_gpu, how)


def _drafter(wishes: Wishes, answer: Answer) -> MemoryTerm | None:
    companions = wishes.companions
    if companions.baked_head:
        how = "The model's own draft blocks, their cache for the same window, and a compute buffer of their own."
        size = answer.growing_bytes
    elif companions.draft_file_bytes:
        file, extra = _gib(companions.draft_file_bytes), _gib(DRAFT_FILE_EXTRA_BYTES)
        how = f"The draft model's file {file} and {extra} for its cache."
        size = companions.draft_file_bytes + DRAFT_FILE_EXTRA_BYTES
    else:
        return None
    return _placed("drafter", "Drafter", wishes, size, bool(wishes.budget.device_bytes), how)


def _checkpoints(table: ModelTable, wishes: Wishes, answer: Answer) -> MemoryTerm:
    window = answer.placement.ctx_tokens
    one = one_checkpoint_bytes(table, window, answer.pair)
    how = (
        f"Up to {wishes.companions.checkpoints.count} checkpoints for each of {answer.launch.slots} slot(s),"
        f" {one / MIB:,.1f} MiB each, always in RAM."
    )
    return MemoryTerm(
        "checkpoints",
        "Context checkpoints",
        _zeros(wishes),
        checkpoint_ram_bytes(table, wishes, window, answer.pair),
        how,
    )


def _runtime(wishes: Wishes) -> MemoryTerm:
    budget = wishes.budget
    how = f"Driver and libraries of one {budget.runtime.upper()} process: {_gib(budget.runtime_bytes)} on every device."
    return MemoryTerm("runtime", "Runtime", tuple(budget.runtime_bytes for _ in budget.device_bytes), 0, how)


def _headroom(wishes: Wishes) -> MemoryTerm:
    how = f"Kept free: {_gib(wishes.headroom_bytes)} on every device."
    devices = tuple(wishes.headroom_bytes for _ in wishes.budget.device_bytes)
    return MemoryTerm("headroom", "Headroom", devices, 0, how)


def _placed(key: str, label: str, wishes: Wishes, size: int, on_gpu: bool, how: str) -> MemoryTerm:
    devices = _zeros(wishes)
    if on_gpu:
        return MemoryTerm(key, label, (*devices[:-1], size), 0, how)
    return MemoryTerm(key, label, devices, size, how)


def _zeros(wishes: Wishes) -> tuple[int, ...]:
    return (0,) * len(wishes.budget.device_bytes)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.2f} GiB"
