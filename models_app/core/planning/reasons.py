"""Why a plan is as it is, in sentences; every limit names itself."""

from __future__ import annotations

from models_app.core.catalog import Reason
from models_app.core.planning.launch_plan import OVER, UNKNOWN, PlannedLaunch
from models_app.core.planning.table import ModelTable
from models_app.core.units import GIB


def reasons_of(table: ModelTable, planned: PlannedLaunch) -> tuple[Reason, ...]:
    """Window, cache, placement, devices, and what exceeds what."""
    if planned.verdict == UNKNOWN:
        return (Reason("cannot-judge", "Cannot judge: the header names no blocks, or the file is empty."),)
    always = (_window(planned), _cache(planned), _placement(table, planned))
    sometimes = (_devices(planned), _head(planned), _ram(planned))
    return always + tuple(reason for reason in sometimes if reason is not None)


def _window(planned: PlannedLaunch) -> Reason:
    answer, asked = planned.answer, planned.wishes.question
    ctx = f"Window of {answer.placement.ctx_tokens:,} tokens"
    if asked.slots > 1:
        ctx += f" for each of {asked.slots} slots"
    trained = f"{asked.ceiling_tokens:,}"
    target = gib(planned.wishes.budget.target_bytes)
    match answer.limit:
        case "pinned":
            return Reason("ctx-pinned", f"{ctx}, pinned by you.")
        case "trained":
            return Reason("ctx-trained", f"{ctx}, the trained length.")
        case "ladder":
            return Reason("ctx-ladder-top", f"{ctx}, the top of the context ladder (the model allows {trained}).")
        case "ram":
            cap = gib(planned.wishes.budget.ram_bytes)
            return Reason(
                "ctx-limited-by-ram", f"{ctx}, context limited by RAM budget {cap} (the model allows {trained})."
            )
        case "least":
            return Reason("ctx-least", f"{ctx}, the least that is planned; even that does not fit.")
        case _:
            text = f"{ctx}, context limited by VRAM target {target} (the model allows {trained})."
            return Reason("ctx-limited-by-vram", text)


def _cache(planned: PlannedLaunch) -> Reason:
    answer, asked, pinned = planned.answer, planned.wishes.question, planned.wishes.pinned
    pair = answer.pair
    if "kv" in pinned:
        return Reason("kv-pinned", f"Cache in {pair.k}, pinned by you.")
    if answer.stepped_down:
        wanted = asked.ctx if asked.ctx is not None else asked.wanted_tokens
        text = f"Cache in {pair.k}: with {asked.kv_pairs[0].k} less of the model or of {wanted:,} tokens would fit."
        return Reason("kv-stepped-down", text)
    return Reason("kv-full", f"Cache in {pair.k}: the wanted window fits without a smaller type.")


def _placement(table: ModelTable, planned: PlannedLaunch) -> Reason:
    answer, pinned = planned.answer, planned.wishes.pinned
    step, layers = answer.step, min(answer.step.gpu_layers, table.blocks + 1)
    by_you = ", pinned by you" if pinned & {"layers", "experts"} else ""
    if planned.fell_back:
        return Reason("placed-in-ram", "Everything in RAM: not one layer fits into the VRAM target.")
    if planned.on_cpu:
        return Reason("placed-in-ram", "Everything in RAM: there is no GPU to plan for.")
    if layers > table.blocks and not (step.cpu_moe_layers and table.is_moe):
        return Reason("placed-on-gpu", f"All {table.blocks} layers and the output on the GPU{by_you}.")
    parts = [] if layers > table.blocks else [f"{layers} of {table.blocks + 1} layers on the GPU, the rest in RAM"]
    if step.cpu_moe_layers and table.is_moe:
        moved = sum(1 for block in table.expert_blocks if block < step.cpu_moe_layers)
        parts.append(f"the experts of {moved} of {len(table.expert_blocks)} layers in RAM, attention stays on the GPU")
    text = "; ".join(parts)
    kind = "experts-in-ram" if layers > table.blocks else "layers-in-ram"
    return Reason(kind, f"{text[0].upper()}{text[1:]}{by_you}.")


def _devices(planned: PlannedLaunch) -> Reason | None:
    budget = planned.wishes.budget
    if len(budget.device_bytes) < 2:
        return None
    over = [
        number
        for number, (held, most) in enumerate(zip(planned.device_bytes, budget.device_bytes, strict=True))
        if held > most
    ]
    if over:
        names = ", ".join(f"device {number}" for number in over)
        return Reason("device-over", f"More than its target would lie on {names}.")
    if "split" in planned.wishes.pinned:
        return Reason("split-pinned", "The shares of the devices are pinned by you.")
    return Reason("split", "Layers are shared so that no device goes over its own target.")


def _head(planned: PlannedLaunch) -> Reason | None:
    if not planned.wishes.companions.baked_head:
        return None
    return Reason(
        "drafts-with-own-head", "Drafts with the model's own draft layers, which need a context of their own."
    )


def _ram(planned: PlannedLaunch) -> Reason | None:
    cap, needed = planned.wishes.budget.ram_bytes, planned.est_ram_bytes
    if planned.verdict == OVER and 0 < cap < needed:
        return Reason("ram-exceeded", f"Needs {gib(needed)} of RAM, more than the RAM budget {gib(cap)}.")
    if planned.verdict == OVER and planned.wishes.budget.device_bytes:
        needed, target = planned.est_vram_bytes, planned.wishes.budget.target_bytes
        return Reason("vram-exceeded", f"Needs {gib(needed)} of VRAM, the target is {gib(target)}.")
    return None


def gib(size_bytes: int) -> str:
    """A size as people read it in a sentence."""
    return f"{size_bytes / GIB:.1f} GiB"
