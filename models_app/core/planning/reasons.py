"""Why a plan is as it is, in sentences; every limit names itself."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from models_app.core.catalog import Reason
from models_app.core.planning.device_split import counts_of
from models_app.core.planning.launch_plan import OVER, UNKNOWN, PlannedLaunch
from models_app.core.planning.question import WINDOW_STEP
from models_app.core.planning.table import ModelTable
from models_app.core.planning.terms import excess_text
from models_app.core.units import GIB, MIB


def reasons_of(table: ModelTable, planned: PlannedLaunch) -> tuple[Reason, ...]:
    """Window, cache, placement, devices, and what exceeds what."""
    if planned.verdict == UNKNOWN:
        return (Reason("cannot-judge", f"Cannot judge: {unjudged(table, planned)}."),)
    always = (_window(table, planned), _cache(planned), _placement(table, planned))
    sometimes = (_devices(table, planned), _head(planned), _excess(planned), _ram(planned))
    return always + tuple(reason for reason in sometimes if reason is not None)


def unjudged(table: ModelTable, planned: PlannedLaunch) -> str:
    """What keeps a launch with the verdict `unknown` from being judged."""
    if planned.wishes.unjudged:
        return planned.wishes.unjudged
    return f"in the header, {table.missing}" if table.file_size_bytes and table.missing else "the file is empty"


def _window(table: ModelTable, planned: PlannedLaunch) -> Reason:
    answer, asked = planned.answer, planned.wishes.question
    tokens = answer.placement.ctx_tokens
    ctx = f"Window of {tokens:,} token{'s' if tokens > 1 else ''}"
    if asked.slots > 1:
        ctx += f" for each of {asked.slots} slots"
    trained = f"{asked.ceiling_tokens:,}"
    target = gib(planned.wishes.budget.target_bytes)
    if planned.verdict == OVER and answer.limit in ("vram", "ram"):
        return Reason("ctx-aimed-at", f"{ctx}, what planning aims for; it does not fit.")
    match answer.limit:
        case "pinned":
            return Reason("ctx-pinned", f"{ctx}, pinned by you.")
        case "trained" if table.trained_tokens <= 0:
            return Reason("ctx-untold", f"{ctx}: the header names no trained length, so no more is tried.")
        case "trained":
            stepped = "" if tokens == asked.ceiling_tokens else f" of {trained} in steps of {WINDOW_STEP:,}"
            return Reason("ctx-trained", f"{ctx}, the trained length{stepped}.")
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
        types = pair.k if pair.k == pair.v else f"{pair.k} and {pair.v}"
        return Reason("kv-pinned", f"Cache in {types}, pinned by you.")
    if answer.stepped_down:
        lost = [] if planned.on_cpu else ["less of the model would fit on the GPU"]
        lost += [] if asked.ctx is not None else ["the window would be shorter"]
        text = " or ".join(lost) or "it would not fit into RAM"
        return Reason("kv-stepped-down", f"Cache in {pair.k}: in {asked.kv_pairs[0].k} {text}.")
    if len(asked.kv_pairs) == 1:
        return Reason("kv-only", f"Cache in {pair.k}: a smaller type does not work here or would save nothing.")
    if answer.fits and answer.placement.ctx_tokens >= asked.wanted_tokens:
        return Reason("kv-full", f"Cache in {pair.k}: the wanted window fits without a smaller type.")
    return Reason("kv-full", f"Cache in {pair.k}: a smaller type would not make the difference.")


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
    whole = layers > table.blocks
    parts = [] if whole else [f"{layers} of {table.blocks + 1} layers on the GPU, the rest in RAM"]
    if step.cpu_moe_layers and table.is_moe:
        moved = sum(1 for block in table.expert_blocks if block < step.cpu_moe_layers)
        attention = ", attention stays on the GPU" if whole else ""
        parts.append(f"the experts of {moved} of {len(table.expert_blocks)} layers in RAM{attention}")
    text = "; ".join(parts)
    return Reason("experts-in-ram" if whole else "layers-in-ram", f"{text[0].upper()}{text[1:]}{by_you}.")


def _devices(table: ModelTable, planned: PlannedLaunch) -> Reason | None:
    budget = planned.wishes.budget
    if len(budget.device_bytes) < 2:
        return None
    over = [
        budget.label(place)
        for place, (held, most) in enumerate(zip(planned.device_bytes, budget.device_bytes, strict=True))
        if held > most
    ]
    if over:
        return Reason("device-over", f"More than its target would lie on {', '.join(over)}.")
    if "split" in planned.wishes.pinned:
        return Reason("split-pinned", "The shares of the devices are pinned by you.")
    if planned.room.ranks:
        return _preferred(table, planned)
    return Reason("split", "Layers are shared so that no device goes over its own target.")


def _preferred(table: ModelTable, planned: PlannedLaunch) -> Reason:
    """Whether the devices that come first by the host's settings hold the launch."""
    answer = planned.answer
    units = min(answer.step.gpu_layers, table.blocks + 1)
    counts = counts_of(answer.launch.tensor_split, units) if answer.launch.tensor_split else ()
    idle = [planned.wishes.budget.label(place) for place, count in enumerate(counts) if not count]
    first = "The devices that come first by the settings of this host"
    if units and idle:
        return Reason("split-preferred", f"{first} hold it: no layer lies on {', '.join(idle)}.")
    return Reason("split", f"{first} do not hold it alone: layers are shared among all.")


def _head(planned: PlannedLaunch) -> Reason | None:
    if not planned.wishes.companions.baked_head:
        return None
    return Reason(
        "drafts-with-own-head", "Drafts with the model's own draft layers, which need a context of their own."
    )


def _excess(planned: PlannedLaunch) -> Reason | None:
    excess = planned.wishes.excess
    on_devices = excess.device_bytes if planned.wishes.budget.device_bytes else 0
    if not on_devices and not excess.ram_bytes:
        return None
    seen = excess_text(replace(excess, device_bytes=on_devices))
    return Reason("measured-extra", f"Kept free: {seen}.")


def _ram(planned: PlannedLaunch) -> Reason | None:
    cap, needed = planned.wishes.budget.ram_bytes, planned.est_ram_bytes
    if planned.verdict == OVER and 0 < cap < needed:
        return Reason(
            "ram-exceeded", f"Needs {gib(needed)} of RAM, {_more(needed, cap)} than the RAM budget {gib(cap)}."
        )
    if planned.verdict == OVER and planned.wishes.budget.device_bytes:
        needed, target = planned.est_vram_bytes, planned.wishes.budget.target_bytes
        beyond = f"{_more(needed, target)} than the target" if needed > target else "the target is"
        return Reason("vram-exceeded", f"Needs {gib(needed)} of VRAM, {beyond} {gib(target)}.")
    return None


def _more(needed: int, limit: int) -> str:
    """`more`, and by how much where both figures read the same."""
    return "more" if gib(needed) != gib(limit) else f"{ceil((needed - limit) / MIB):,} MiB more"


def missing_gib(size_bytes: int) -> str:
    """As `gib`, but rounded up: with what is said, it does fit."""
    return f"{ceil(size_bytes * 10 / GIB) / 10:,.1f} GiB"


def gib(size_bytes: int) -> str:
    """A size as people read it in a sentence."""
    return f"{size_bytes / GIB:,.1f} GiB"
