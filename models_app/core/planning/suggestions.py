"""The smallest changes that would make a plan fit, or fit better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from models_app.core.planning.batch import effective_ubatch
from models_app.core.planning.cache_choice import SMALLER, usable_pairs
from models_app.core.planning.fitting import Fitter
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.launch_plan import FITS, OVER, UNKNOWN, PlannedLaunch
from models_app.core.planning.question import WINDOW_STEP, Step
from models_app.core.planning.reasons import gib, missing_gib
from models_app.core.planning.search import placement_ladder
from models_app.core.planning.table import ModelTable
from models_app.core.planning.wishes import checkpoint_ram_bytes
from models_app.core.units import GIB


def suggestions_of(table: ModelTable, planned: PlannedLaunch) -> tuple[str, ...]:
    """At most one sentence for each thing that can be changed: window, cache type, memory."""
    if planned.verdict == UNKNOWN:
        return ()
    if planned.verdict == OVER:
        found = _to_fit(planned, Fitter(table, planned.wishes.question, planned.room))
    else:
        asked = replace(planned.wishes.question, ctx=None, gpu_layers=None, cpu_moe_layers=None)
        fitter = Fitter(table, asked, planned.room)
        found = [_longer_window(planned, fitter)] if planned.verdict == FITS else _for_more_on_the_gpu(planned, fitter)
        found.append(_smaller_cache(planned, fitter))
    return tuple(text for text in found if text)


# What would make it fit at all.


def _to_fit(planned: PlannedLaunch, fitter: Fitter) -> list[str]:
    """Everything that a person pinned stays, but for the one thing that the sentence names."""
    return [
        _without_pinned_placement(planned, fitter),
        _window_that_fits(planned, fitter),
        _cache_that_fits(planned, fitter),
        _memory_that_fits(planned, fitter),
    ]


def _ladder(planned: PlannedLaunch, fitter: Fitter) -> list[Step]:
    """The rungs that the pins allow; only the last one, all in RAM, where there is no device."""
    if not planned.wishes.budget.device_bytes:
        return [planned.answer.step]
    return placement_ladder(fitter.table, fitter.question)


def _fits_at(planned: PlannedLaunch, fitter: Fitter, ctx_tokens: int, pair: KvPair, ladder: list[Step]) -> bool:
    """Some rung fits. The best one for the devices leaves the least in RAM."""
    rung = fitter.first_fitting(ctx_tokens, pair, ladder)
    if rung is None:
        return False
    # The room in RAM is what the most checkpoints leave; with this window pinned there may be fewer.
    table, wishes = fitter.table, planned.wishes
    fewer = checkpoint_ram_bytes(table, wishes) - checkpoint_ram_bytes(table, wishes, ctx_tokens, pair)
    return fitter.trial(ctx_tokens, pair, ladder[rung]).spare_ram_bytes + fewer >= 0


def _without_pinned_placement(planned: PlannedLaunch, fitter: Fitter) -> str:
    if not planned.wishes.pinned & {"layers", "experts"}:
        return ""
    free = replace(planned.wishes.question, gpu_layers=None, cpu_moe_layers=None)
    freed = Fitter(fitter.table, free, fitter.room)
    answer = planned.answer
    fits = _fits_at(planned, freed, answer.placement.ctx_tokens, answer.pair, _ladder(planned, freed))
    return "Fits without the pinned placement." if fits else ""


def _window_that_fits(planned: PlannedLaunch, fitter: Fitter) -> str:
    """The longest window below this one at which the launch fits, whatever has to stay in RAM for it."""
    pair = planned.answer.pair
    if longest := _longest_that_fits(planned, fitter, pair):
        return f"Fits at {longest:,} tokens."
    smaller = _longest_that_fits(planned, fitter, SMALLER) if _can_be_smaller(planned, fitter) else 0
    return f"Fits at {smaller:,} tokens with a {SMALLER.k} KV cache." if smaller else ""


def _longest_that_fits(planned: PlannedLaunch, fitter: Fitter, pair: KvPair) -> int:
    """In steps, below the window as planned; 0 when none fits."""
    ladder = _ladder(planned, fitter)
    low, high = 1, (planned.answer.placement.ctx_tokens - 1) // WINDOW_STEP
    if high < low or not _fits_at(planned, fitter, WINDOW_STEP, pair, ladder):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if _fits_at(planned, fitter, middle * WINDOW_STEP, pair, ladder):
            low = middle
        else:
            high = middle - 1
    return low * WINDOW_STEP


def _cache_that_fits(planned: PlannedLaunch, fitter: Fitter) -> str:
    answer = planned.answer
    if not _can_be_smaller(planned, fitter):
        return ""
    fits = _fits_at(planned, fitter, answer.placement.ctx_tokens, SMALLER, _ladder(planned, fitter))
    return f"Fits with a {SMALLER.k} KV cache." if fits else ""


def _memory_that_fits(planned: PlannedLaunch, fitter: Fitter) -> str:
    """What this very plan lacks in RAM, or what of the GPU would take it."""
    ram = _missing_ram(planned, fitter)
    vram = _with_larger_batch(planned, fitter, lambda asked: _missing_vram(planned, asked))
    wanted = [f"{missing_gib(ram)} more RAM"] if ram else []
    wanted += [f"{missing_gib(vram)} more VRAM"] if vram else []
    pinned = planned.answer.limit == "pinned"
    window = "" if pinned else f" at {planned.answer.placement.ctx_tokens:,} tokens"
    return f"Fits{window} with {' or '.join(wanted)}." if wanted else ""


def _missing_ram(planned: PlannedLaunch, fitter: Fitter) -> int:
    """Of a plan that lacks nothing else. The search keeps room for the most that checkpoints can come to."""
    answer, cap = planned.answer, planned.wishes.budget.ram_bytes
    trial = fitter.trial(answer.placement.ctx_tokens, answer.pair, answer.step)
    if not cap or not trial.fits_devices:
        return 0
    return max(0, planned.est_ram_bytes - cap, -trial.spare_ram_bytes)


def _missing_vram(planned: PlannedLaunch, fitter: Fitter) -> int:
    """How much more the devices need together, so that what then stays in RAM fits there; 0 where that is no way."""
    if not planned.wishes.budget.device_bytes:
        return 0
    answer, ladder = planned.answer, _ladder(planned, fitter)
    window, pair = answer.placement.ctx_tokens, answer.pair
    low, high = -1, len(ladder) - 1  # the last rung whose rest fits into RAM: the host holds more on every further one
    while low < high:
        middle = (low + high + 1) // 2
        if fitter.trial(window, pair, ladder[middle]).spare_ram_bytes >= 0:
            low = middle
        else:
            high = middle - 1
    return _excess(fitter, window, pair, ladder[low]) if low >= 0 else 0


def _with_larger_batch(planned: PlannedLaunch, fitter: Fitter, missing: Callable[[Fitter], int]) -> int:
    """Missing VRAM. A larger target may bring back the micro-batch that a small one shrank, and needs more then."""
    found, asked = missing(fitter), fitter.question
    target_gib = (planned.wishes.budget.target_bytes + found) / GIB + 0.1  # figures are said in tenths, rounded up
    larger = effective_ubatch(fitter.table.is_moe, True, target_gib)
    if not found or "ubatch" in planned.wishes.pinned or larger <= asked.ubatch:
        return found
    return max(found, missing(Fitter(fitter.table, replace(asked, ubatch=larger), fitter.room)))


def _excess(fitter: Fitter, ctx_tokens: int, pair: KvPair, step: Step) -> int:
    """What a placement holds beyond all devices together."""
    trial = fitter.trial(ctx_tokens, pair, step)
    held = sum(device.total_bytes for device in trial.loads) + trial.growing_bytes
    return max(0, held - sum(fitter.room.device_bytes))


# What would make it better.


def _for_more_on_the_gpu(planned: PlannedLaunch, fitter: Fitter) -> list[str]:
    answer, budget = planned.answer, planned.wishes.budget
    if budget.device_bytes and fitter.trial(answer.placement.ctx_tokens, answer.pair, _everything(fitter)).fits:
        return ["Without the pinned placement everything would be on the GPU."]
    return [_more_memory(planned, fitter), _shorter_window(planned, fitter)]


def _everything(fitter: Fitter) -> Step:
    return Step(fitter.all_layers, 0)


def _more_memory(planned: PlannedLaunch, fitter: Fitter) -> str:
    """How much more would hold the whole model at the same window."""
    answer = planned.answer
    if not planned.wishes.budget.device_bytes:
        return ""
    window = answer.placement.ctx_tokens
    missing = _with_larger_batch(planned, fitter, lambda asked: _excess(asked, window, answer.pair, _everything(asked)))
    return (
        f"With {missing_gib(missing)} more VRAM everything would be on the GPU at {window:,} tokens." if missing else ""
    )


def _shorter_window(planned: PlannedLaunch, fitter: Fitter) -> str:
    """The window at which everything would be on the GPU."""
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
    answer, asked = planned.answer, fitter.question
    wanted = asked.offloaded_tokens if fitter.table.is_moe else asked.wanted_tokens
    short = answer.limit == "vram" and answer.placement.ctx_tokens < wanted
    if not short or not planned.wishes.budget.device_bytes or "ctx" in planned.wishes.pinned:
        return ""
    ladder = placement_ladder(fitter.table, asked)
    rung = fitter.first_fitting(wanted, answer.pair, ladder)
    if not rung or not fitter.trial(wanted, answer.pair, ladder[rung]).fits:
        return ""
    return f"{wanted:,} tokens would fit with {_moved(fitter, ladder[rung])} in RAM."


def _moved(fitter: Fitter, step: Step) -> str:
    """What a rung leaves in RAM, in words."""
    everything = fitter.all_layers
    if step.gpu_layers < everything:
        return f"{everything - step.gpu_layers} of {everything} layers"
    blocks = fitter.table.expert_blocks
    moved = sum(1 for block in blocks if block < step.cpu_moe_layers)
    return f"the experts of {moved} of {len(blocks)} layers"


def _smaller_cache(planned: PlannedLaunch, fitter: Fitter) -> str:
    """The window that a quantised cache would hold in the same place."""
    answer, asked = planned.answer, fitter.question
    limited = answer.limit in ("vram", "ram", "least") and "ctx" not in planned.wishes.pinned
    if not limited or not _can_be_smaller(planned, fitter):
        return ""
    reached = fitter.longest(SMALLER, answer.step, answer.placement.ctx_tokens, asked.top_tokens)
    if reached <= answer.placement.ctx_tokens:
        return ""
    return f"A {SMALLER.k} KV cache would fit {reached:,} tokens."


def _can_be_smaller(planned: PlannedLaunch, fitter: Fitter) -> bool:
    """The cache is in full precision, and a quantised one works."""
    full = planned.answer.pair.k in ("f32", "f16", "bf16")
    return full and SMALLER in usable_pairs(fitter.table, fitter.question.flash_attn)


def _below(ctx_tokens: int) -> int:
    return max(1, (ctx_tokens - 1) // WINDOW_STEP * WINDOW_STEP)


def _context_bytes(planned: PlannedLaunch) -> int:
    answer = planned.answer
    return sum(device.context_bytes for device in answer.loads) + answer.host.context_bytes
