"""The smallest changes that would make a plan fit, or fit better."""

from __future__ import annotations

from dataclasses import replace

from models_app.core.planning.cache_choice import SMALLER, usable_pairs
from models_app.core.planning.fitting import Fitter
from models_app.core.planning.launch_plan import FITS, UNKNOWN, PlannedLaunch
from models_app.core.planning.question import WINDOW_STEP, Step
from models_app.core.planning.reasons import gib
from models_app.core.planning.table import ModelTable


def suggestions_of(table: ModelTable, planned: PlannedLaunch) -> tuple[str, ...]:
    """At most one sentence for each thing that can be changed: memory, window, cache type."""
    if planned.verdict == UNKNOWN:
        return ()
    asked = replace(planned.wishes.question, ctx=None, gpu_layers=None, cpu_moe_layers=None)
    fitter = Fitter(table, asked, planned.room)
    found = [_longer_window(planned, fitter)] if planned.verdict == FITS else _for_more_on_the_gpu(planned, fitter)
    found.append(_smaller_cache(planned, fitter))
    return tuple(text for text in found if text)


def _for_more_on_the_gpu(planned: PlannedLaunch, fitter: Fitter) -> list[str]:
    answer, budget = planned.answer, planned.wishes.budget
    if budget.device_bytes and fitter.trial(answer.placement.ctx_tokens, answer.pair, _everything(fitter)).fits:
        return ["Without the pinned placement everything would be on the GPU."]
    return [_more_ram(planned), _more_memory(planned, fitter), _shorter_window(planned, fitter)]


def _everything(fitter: Fitter) -> Step:
    return Step(fitter.all_layers, 0)


def _more_ram(planned: PlannedLaunch) -> str:
    """What this very plan lacks in RAM."""
    cap = planned.wishes.budget.ram_bytes
    missing = planned.est_ram_bytes - cap
    return f"Fits with {gib(missing)} more RAM." if cap and missing > 0 else ""


def _more_memory(planned: PlannedLaunch, fitter: Fitter) -> str:
    """How much more would hold the whole model at the same window."""
    budget, answer = planned.wishes.budget, planned.answer
    if not budget.device_bytes:
        return ""
    trial = fitter.trial(answer.placement.ctx_tokens, answer.pair, _everything(fitter))
    held = sum(device.total_bytes for device in trial.loads) + trial.growing_bytes
    missing = held - sum(planned.room.device_bytes)
    if missing <= 0:
        return ""
    return f"With {gib(missing)} more VRAM everything would be on the GPU at {answer.placement.ctx_tokens:,} tokens."


def _shorter_window(planned: PlannedLaunch, fitter: Fitter) -> str:
    """The window at which everything would be on the GPU, or at which it would fit at all."""
    answer, asked = planned.answer, fitter.question
    now = answer.placement.ctx_tokens
    least = min(WINDOW_STEP, asked.top_tokens)
    if now <= least or not planned.wishes.budget.device_bytes:
        return ""
    reached = fitter.longest(answer.pair, _everything(fitter), least, min(_below(now), asked.top_tokens))
    if not reached:
        return ""
    saved = _context_bytes(planned) * (now - reached) // now
    return f"Fits on the GPU with {gib(saved)} less of context, at {reached:,} tokens."


def _longer_window(planned: PlannedLaunch, fitter: Fitter) -> str:
    """What the wanted window would cost, where everything is on the GPU and the window is short for it."""
    answer, wanted = planned.answer, fitter.question.wanted_tokens
    short = answer.limit == "vram" and answer.placement.ctx_tokens < wanted
    if not short or fitter.table.is_moe or not planned.wishes.budget.device_bytes:
        return ""
    everything = fitter.all_layers
    ladder = [Step(layers, 0) for layers in range(everything, -1, -1)]
    rung = fitter.first_fitting(wanted, answer.pair, ladder)
    return f"{wanted:,} tokens would fit with {rung} of {everything} layers in RAM." if rung else ""


def _smaller_cache(planned: PlannedLaunch, fitter: Fitter) -> str:
    """The window that a quantised cache would hold in the same place."""
    answer, asked = planned.answer, fitter.question
    could = answer.pair.k in ("f32", "f16", "bf16") and "ctx" not in planned.wishes.pinned
    if (
        not could
        or answer.limit not in ("vram", "ram", "least")
        or SMALLER not in usable_pairs(fitter.table, asked.flash_attn)
    ):
        return ""
    reached = fitter.longest(SMALLER, answer.step, answer.placement.ctx_tokens, asked.top_tokens)
    if reached <= answer.placement.ctx_tokens:
        return ""
    return f"A {SMALLER.k} KV cache would fit {reached:,} tokens."


def _below(ctx_tokens: int) -> int:
    return max(1, (ctx_tokens - 1) // WINDOW_STEP * WINDOW_STEP)


def _context_bytes(planned: PlannedLaunch) -> int:
    answer = planned.answer
    return sum(device.context_bytes for device in answer.loads) + answer.host.context_bytes
