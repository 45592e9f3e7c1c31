"""Memory against the window, everything else as a plan has it: what more context would cost, and where it ends.

Every point is the arithmetic of the search itself (`Fitter.trial`, `Fitter.longest`); what does not depend on the
window (runtime, headroom, projector, a paired draft file) is what the plan has of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models_app.core.planning.cache_choice import FULL, SMALLER, usable_pairs
from models_app.core.planning.fitting import Fitter, Trial
from models_app.core.planning.kv_types import KvPair, element_bytes
from models_app.core.planning.launch_plan import UNKNOWN, PlannedLaunch
from models_app.core.planning.question import WINDOW_STEP, stepped
from models_app.core.planning.table import ModelTable
from models_app.core.planning.wishes import checkpoint_ram_bytes

VRAM = "vram"
RAM = "ram"
_LEAST_WINDOW = 256


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a window of so many tokens for each conversation holds, in bytes over all devices and in RAM."""

    ctx_tokens: int
    vram_bytes: int
    ram_bytes: int
    fits: bool

    def bytes_in(self, place: str) -> int:
        """Of `vram` or `ram`."""
        return self.vram_bytes if place == VRAM else self.ram_bytes


@dataclass(frozen=True, slots=True)
class CacheCurve:
    """The points for one pair of cache types, by window. `longest_tokens` is the longest that fits, 0 for none."""

    pair: KvPair
    points: tuple[CurvePoint, ...]
    longest_tokens: int


@dataclass(frozen=True, slots=True)
class ContextCurve:
    """The curve of one plan. `smaller` is the same launch with a smaller cache, where one works and gains something."""

    place: str
    """The memory that is worth drawing: `ram` where the cache lies there or RAM is full first, else `vram`."""
    target_bytes: int
    """What may be used of it; 0 for no limit."""
    now: CurvePoint
    trained_tokens: int
    """0 where the header does not say."""
    ceiling_tokens: int
    """No window is longer: the trained one, stretched where RoPE scaling allows it."""
    device_count: int
    own: CacheCurve
    smaller: CacheCurve | None

    @property
    def top_tokens(self) -> int:
        """The longest window that the search would choose; one that reaches it ends for no lack of memory."""
        return stepped(self.ceiling_tokens)


def context_curve(table: ModelTable, planned: PlannedLaunch) -> ContextCurve | None:
    """The curve of a plan; None for one that cannot be judged."""
    if planned.verdict == UNKNOWN:
        return None
    pricer = _Pricer(table, planned)
    answer, asked = planned.answer, planned.wishes.question
    now = answer.placement.ctx_tokens
    smaller = _smaller(table, planned)
    longest = pricer.longest(answer.pair)
    if answer.fits:
        longest = max(longest, now)  # a pinned window need not be a multiple of the step
    longest_smaller = pricer.longest(smaller) if smaller else 0
    windows = _windows(asked.ceiling_tokens, (now, longest, longest_smaller, table.trained_tokens))
    place = pricer.place(longest)
    return ContextCurve(
        place=place,
        target_bytes=planned.wishes.budget.target_bytes if place == VRAM else planned.wishes.budget.ram_bytes,
        now=CurvePoint(now, planned.est_vram_bytes, planned.est_ram_bytes, answer.fits),
        trained_tokens=table.trained_tokens,
        ceiling_tokens=asked.ceiling_tokens,
        device_count=len(planned.wishes.budget.device_bytes),
        own=CacheCurve(answer.pair, pricer.points(windows, answer.pair), longest),
        smaller=CacheCurve(smaller, pricer.points(windows, smaller), longest_smaller) if smaller else None,
    )


def _smaller(table: ModelTable, planned: PlannedLaunch) -> KvPair | None:
    """The pair that would hold more in the same place."""
    pair, asked = planned.answer.pair, planned.wishes.question
    larger = pair.k == pair.v and element_bytes(pair.k) >= element_bytes(FULL.k)
    return SMALLER if larger and SMALLER in usable_pairs(table, asked.flash_attn) else None


def _windows(ceiling_tokens: int, wanted: Iterable[int]) -> tuple[int, ...]:
    """Doublings up to the ceiling, and the windows that matter."""
    found = {tokens for tokens in (*wanted, ceiling_tokens) if tokens > 0}
    window = WINDOW_STEP if ceiling_tokens > WINDOW_STEP else _LEAST_WINDOW
    while window < ceiling_tokens:
        found.add(window)
        window *= 2
    return tuple(sorted(found))


class _Pricer:
    """Prices windows at the plan's own placement."""

    def __init__(self, table: ModelTable, planned: PlannedLaunch) -> None:
        answer = planned.answer
        self._table, self._planned = table, planned
        self._fitter = Fitter(table, planned.wishes.question, planned.room)
        held = sum(device.total_bytes for device in answer.loads)
        held += answer.growing_bytes if answer.loads else 0
        self._fixed_vram_bytes = planned.est_vram_bytes - held
        self._fixed_ram_bytes = planned.est_ram_bytes - self._growing_ram(
            answer.placement.ctx_tokens, answer.pair, answer.host.total_bytes, answer.growing_bytes
        )

    def points(self, windows: tuple[int, ...], pair: KvPair) -> tuple[CurvePoint, ...]:
        return tuple(self._point(window, pair) for window in windows)

    def longest(self, pair: KvPair) -> int:
        ceiling = self._planned.wishes.question.ceiling_tokens
        top = stepped(ceiling)
        return self._fitter.longest(pair, self._planned.answer.step, min(WINDOW_STEP, top), top)

    def place(self, longest: int) -> str:
        """Where the end of the line is: RAM if the cache lies there, or if RAM is full before the devices are."""
        answer, asked = self._planned.answer, self._planned.wishes.question
        if not answer.loads or answer.step.gpu_layers == 0 or answer.placement.kv_in_ram:
            return RAM
        longer = self._trial(min(stepped(longest + WINDOW_STEP), stepped(asked.ceiling_tokens)), answer.pair)
        return RAM if longer.fits_devices and not longer.fits else VRAM

    def _trial(self, window: int, pair: KvPair) -> Trial:
        return self._fitter.trial(window, pair, self._planned.answer.step)

    def _point(self, window: int, pair: KvPair) -> CurvePoint:
        planned, answer = self._planned, self._planned.answer
        if window == answer.placement.ctx_tokens and pair == answer.pair:
            return CurvePoint(window, planned.est_vram_bytes, planned.est_ram_bytes, answer.fits)
        trial = self._trial(window, pair)
        growing = trial.growing_bytes if trial.loads else 0
        vram = self._fixed_vram_bytes + sum(device.total_bytes for device in trial.loads) + growing
        ram = self._growing_ram(window, pair, trial.use.host.total_bytes, trial.growing_bytes)
        return CurvePoint(window, vram, self._fixed_ram_bytes + ram, trial.fits)

    def _growing_ram(self, window: int, pair: KvPair, host_bytes: int, growing_bytes: int) -> int:
        """What depends on the window in RAM: the host's share, checkpoints, and a draft context without a device."""
        planned = self._planned
        checkpoints = checkpoint_ram_bytes(self._table, planned.wishes, window, pair)
        return host_bytes + checkpoints + (0 if planned.answer.loads else growing_bytes)
