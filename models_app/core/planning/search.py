"""The search: the longest useful window, then as much of the model on the GPU as fits (sizing.md 8 to 10 and 19).

The policy is the reference's, the arithmetic is exact. A placement is a rung of a ladder: everything on the GPU, then
experts of more and more layers in RAM, then fewer and fewer layers. The search takes the best rung that fits at the
wanted window, and then the longest window that this rung allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from models_app.core.catalog import Launch, Placement, Projection
from models_app.core.planning.classic_placement import ALL_LAYERS
from models_app.core.planning.fitting import Fitter
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.projection import project
from models_app.core.planning.question import WINDOW_STEP, Answer, Question, Room, Step, stepped
from models_app.core.planning.table import ModelTable

Policy = Callable[[Fitter, KvPair, list[Step]], Answer]


def search(table: ModelTable, question: Question, room: Room) -> Answer:
    """The plan of one profile. Never fails: what can't fit is answered with `fits` False."""
    if not room.device_bytes:
        return _best_pair(table, replace(question, gpu_layers=0), room, _in_ram)
    if question.ctx is not None:
        return _best_pair(table, question, room, _at_window)
    return _best_pair(table, question, room, _cache_in_ram if question.kv_in_ram else _free)


def emitted_layers(step: Step, all_layers: int) -> int:
    """The number after `-ngl`: 99, or more where the model has more, for everything."""
    return max(ALL_LAYERS, all_layers) if step.gpu_layers >= all_layers else step.gpu_layers


def placement_ladder(table: ModelTable, question: Question) -> list[Step]:
    """Rungs from most on the GPU to least, experts before layers; pins leave only what they allow."""
    everything = table.blocks + 1
    layers = question.gpu_layers
    experts = question.cpu_moe_layers
    expert_rungs = [0, *(block + 1 for block in table.expert_blocks)] if experts is None else [experts]
    if layers is not None:
        return [Step(min(layers, everything), rung) for rung in expert_rungs]
    ladder = [Step(everything, rung) for rung in expert_rungs]
    return ladder + [Step(count, expert_rungs[-1]) for count in range(everything - 1, -1, -1)]


def _best_pair(table: ModelTable, question: Question, room: Room, policy: Policy) -> Answer:
    """The first pair that holds the wanted window with all that may be there on the GPU; else the better outcome."""
    fitter = Fitter(table, question, room)
    ladder = placement_ladder(table, question)
    best: tuple[tuple[int, ...], Answer] | None = None
    for number, pair in enumerate(question.kv_pairs):
        answer = policy(fitter, pair, ladder)
        answer = replace(answer, stepped_down=number > 0)
        rank = _rank(fitter, answer, ladder)
        if best is None or rank > best[0]:
            best = rank, answer
        if _satisfied(answer, question, ladder):
            break
    assert best is not None
    return best[1]


def _satisfied(answer: Answer, question: Question, ladder: list[Step]) -> bool:
    """Nothing that a smaller cache could improve."""
    wanted = question.ctx if question.ctx is not None else question.wanted_tokens
    return answer.fits and answer.step == ladder[0] and answer.placement.ctx_tokens >= wanted


def _rank(fitter: Fitter, answer: Answer, ladder: list[Step]) -> tuple[int, ...]:
    """Fitting first, all on the GPU, the window up to the wanted one, the rung; precision wins ties by coming first."""
    rung = ladder.index(answer.step) if answer.step in ladder else len(ladder)
    wanted = min(answer.placement.ctx_tokens, fitter.question.wanted_tokens)
    return int(answer.fits), int(rung == 0), wanted, -rung, answer.placement.ctx_tokens


def _free(fitter: Fitter, pair: KvPair, ladder: list[Step]) -> Answer:
    """Nothing about window or cache is pinned."""
    answer = _by_devices(fitter, pair, ladder)
    return answer if answer.fits else _short_for_ram(fitter, pair, ladder, answer)


def _short_for_ram(fitter: Fitter, pair: KvPair, ladder: list[Step], wished: Answer) -> Answer:
    """The longest window whose rest fits into RAM, where what the devices would hold leaves too much for it.

    A shorter window leaves more of the model on the devices. Where none fits, the wished one tells what is missing.
    """

    def best(steps: int) -> Step | None:
        rung = fitter.first_fitting(steps * WINDOW_STEP, pair, ladder)
        return None if rung is None else _with_experts_back(fitter, pair, ladder[rung], steps * WINDOW_STEP)

    def fits(steps: int) -> bool:
        step = best(steps)
        return step is not None and fitter.trial(steps * WINDOW_STEP, pair, step).fits

    low, high = 1, (wished.placement.ctx_tokens - 1) // WINDOW_STEP
    if high < low or not fits(low):
        return wished
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    step = best(low)
    return wished if step is None else _answer(fitter, pair, step, low * WINDOW_STEP, "ram")


def _by_devices(fitter: Fitter, pair: KvPair, ladder: list[Step]) -> Answer:
    """The plan that the devices allow; what it leaves in RAM may be too much."""
    asked = fitter.question
    top, wanted = asked.top_tokens, asked.wanted_tokens
    best = ladder[0]
    reached = fitter.longest(pair, best, min(WINDOW_STEP, top), top)
    if reached >= wanted or (reached and not fitter.table.is_moe) or (reached and len(ladder) == 1):
        return _answer(fitter, pair, best, reached, _limit(asked, reached, _too_full(fitter, pair, best, reached)))
    if fitter.table.is_moe:
        return _with_experts_in_ram(fitter, pair, ladder)
    return _with_layers_in_ram(fitter, pair, ladder)


def _with_experts_in_ram(fitter: Fitter, pair: KvPair, ladder: list[Step]) -> Answer:
    """Experts leave the GPU until the target window fits; when none is left there, the window gives in first."""
    asked = fitter.question
    target = asked.offloaded_tokens
    with_all_layers = [step for step in ladder if step.gpu_layers == ladder[0].gpu_layers]
    rung = fitter.first_fitting(target, pair, with_all_layers)
    if rung is not None:
        return _grown(fitter, pair, with_all_layers[rung], target)
    last = with_all_layers[-1]
    reached = fitter.longest(pair, last, asked.wanted_tokens, target)
    if reached:
        return _grown(fitter, pair, last, reached)
    return _with_layers_in_ram(fitter, pair, ladder)


def _with_layers_in_ram(fitter: Fitter, pair: KvPair, ladder: list[Step]) -> Answer:
    """Layers leave the GPU until the wanted window fits."""
    wanted = fitter.question.wanted_tokens
    rung = fitter.first_fitting(wanted, pair, ladder)
    if rung is None:
        return _shortest(fitter, pair, ladder[-1])
    return _grown(fitter, pair, _with_experts_back(fitter, pair, ladder[rung], wanted), wanted)


def _with_experts_back(fitter: Fitter, pair: KvPair, step: Step, ctx_tokens: int) -> Step:
    """Fewer experts in RAM, where the layers that stayed leave room for some."""
    asked, table = fitter.question, fitter.table
    if asked.cpu_moe_layers is not None or step.gpu_layers > table.blocks or not table.is_moe:
        return step
    rungs = [Step(step.gpu_layers, count) for count in (0, *(block + 1 for block in table.expert_blocks))]
    rung = fitter.first_fitting(ctx_tokens, pair, rungs)
    return step if rung is None else rungs[rung]


def _grown(fitter: Fitter, pair: KvPair, step: Step, ctx_tokens: int) -> Answer:
    """A longer window for free: what is left over with this placement."""
    asked = fitter.question
    reached = fitter.longest(pair, step, ctx_tokens, asked.top_tokens) or ctx_tokens
    return _answer(fitter, pair, step, reached, _limit(asked, reached, _too_full(fitter, pair, step, reached)))


def _shortest(fitter: Fitter, pair: KvPair, step: Step) -> Answer:
    """Not even the last rung holds the wanted window: a shorter one, down to the least."""
    asked = fitter.question
    least = min(WINDOW_STEP, asked.top_tokens)
    reached = fitter.longest(pair, step, least, asked.wanted_tokens)
    return _answer(fitter, pair, step, reached or least, "vram" if reached else "least")


def _at_window(fitter: Fitter, pair: KvPair, ladder: list[Step]) -> Answer:
    """The window is pinned: the best rung that fits there."""
    ctx = fitter.question.ctx or 1
    rung = fitter.first_fitting(ctx, pair, ladder)
    step = ladder[-1] if rung is None else _with_experts_back(fitter, pair, ladder[rung], ctx)
    return _answer(fitter, pair, step, ctx, "pinned")


def _cache_in_ram(fitter: Fitter, pair: KvPair, ladder: list[Step]) -> Answer:
    """The cache lies in RAM, and its size there limits the window."""
    asked = fitter.question
    rung = fitter.first_fitting(asked.wanted_tokens, pair, ladder)
    step = ladder[-1] if rung is None else ladder[rung]
    return _by_ram(fitter, pair, _with_experts_back(fitter, pair, step, asked.wanted_tokens))


def _in_ram(fitter: Fitter, pair: KvPair, ladder: list[Step]) -> Answer:
    """No device: everything in RAM."""
    asked = fitter.question
    if asked.ctx is not None:
        return _answer(fitter, pair, Step(0, 0), asked.ctx, "pinned")
    return _by_ram(fitter, pair, ladder[0] if asked.cpu_moe_layers is None else Step(0, 0))


def _by_ram(fitter: Fitter, pair: KvPair, step: Step) -> Answer:
    asked = fitter.question
    least = min(WINDOW_STEP, asked.top_tokens)
    reached = fitter.longest(pair, step, least, asked.top_tokens)
    limit = _limit(asked, reached, "ram") if reached else "least"
    return _answer(fitter, pair, step, reached or least, limit)


def _answer(fitter: Fitter, pair: KvPair, step: Step, ctx_tokens: int, limit: str) -> Answer:
    trial = fitter.balanced(ctx_tokens, pair, step)
    launch, room = trial.launch, fitter.room
    shared = launch.tensor_split if len(room.device_bytes) > 1 and step.gpu_layers > 0 else ()
    placement = Placement(
        ctx_tokens=ctx_tokens,
        gpu_layers=emitted_layers(step, fitter.all_layers),
        cpu_moe_layers=step.cpu_moe_layers,
        type_k=pair.k,
        type_v=pair.v,
        ubatch=launch.ubatch,
        batch=launch.batch,
        slots=launch.slots,
        tensor_split=shared,
        kv_in_ram=fitter.question.kv_in_ram,
    )
    return Answer(
        placement=placement,
        launch=launch,
        projection=_plain(fitter, launch) if room.adjusts or launch.draft_tokens else trial.use,
        loads=trial.loads,
        host=trial.use.host,
        growing_bytes=trial.growing_bytes,
        step=step,
        pair=pair,
        fits=trial.fits,
        limit=limit,
    )


def _plain(fitter: Fitter, launch: Launch) -> Projection:
    """The launch as `project` sees it, which knows of no drafts."""
    return project(fitter.table, replace(launch, draft_tokens=0), replays=False)


def _too_full(fitter: Fitter, pair: KvPair, step: Step, reached: int) -> str:
    """What keeps the window from being one step longer."""
    longer = fitter.trial(min(stepped(reached + WINDOW_STEP), fitter.question.top_tokens), pair, step)
    return "ram" if longer.fits_devices and not longer.fits else "vram"


def _limit(asked: Question, reached: int, otherwise: str = "vram") -> str:
    if reached < asked.top_tokens:
        return otherwise
    return "ladder" if 0 < asked.ladder_top < asked.ceiling_tokens else "trained"
