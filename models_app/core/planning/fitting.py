"""Does a launch fit, and what is the most that fits: the questions that the search is made of.

All searches bisect: memory grows with the window and with every layer or expert that moves to a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from models_app.core.catalog import Launch, MemoryUse, Projection
from models_app.core.planning.batch import effective_batch
from models_app.core.planning.device_split import filled_in_order, proportional, shares_of
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.projection import load_of_units, project
from models_app.core.planning.question import WINDOW_STEP, Question, Room, Step
from models_app.core.planning.table import ModelTable

UNLIMITED = 1 << 62
_BALANCE_ROUNDS = 5


def last_holding(low: int, spare_low: int, high: int, spare_high: int, spare: Callable[[int], int]) -> int:
    """The last of the numbers from `low` to `high` with something to spare, where `low` has and `high` has not.

    Memory is nearly linear in what is searched for, so the line between the ends almost hits it; every third time the
    middle is taken, in case it is not.
    """
    turn = 0
    while low + 1 < high:
        turn += 1
        guess = (low + high) // 2
        if turn % 3:
            guess = low + int((high - low) * spare_low / (spare_low - spare_high))
            guess = min(max(guess, low + 1), high - 1)
        found = spare(guess)
        if found >= 0:
            low, spare_low = guess, found
        else:
            high, spare_high = guess, found
    return low


@dataclass(frozen=True, slots=True)
class Trial:
    """One launch and what it would hold."""

    launch: Launch
    use: Projection
    growing_bytes: int
    spare_device_bytes: int
    """Room left on the fullest device; below zero where it is too full."""
    spare_ram_bytes: int

    @property
    def fits_devices(self) -> bool:
        return self.spare_device_bytes >= 0

    @property
    def spare_bytes(self) -> int:
        return min(self.spare_device_bytes, self.spare_ram_bytes)

    @property
    def fits(self) -> bool:
        return self.spare_bytes >= 0

    @property
    def loads(self) -> tuple[MemoryUse, ...]:
        return self.use.devices


@dataclass(slots=True)
class Fitter:
    """Tries launches of one model against one room. Answers are remembered: the search asks some of them twice."""

    table: ModelTable
    question: Question
    room: Room
    _last_counts: tuple[int, ...] = ()
    _trials: dict[tuple[int, KvPair, Step], Trial] = field(default_factory=dict)
    _filled: dict[tuple[int, KvPair, Step], tuple[int, ...]] = field(default_factory=dict)
    """The rooms that a trial filled: of some devices, where these are preferred and hold it."""

    @property
    def all_layers(self) -> int:
        return self.table.blocks + 1

    def trial(self, ctx_tokens: int, pair: KvPair, step: Step) -> Trial:
        """This launch, with layers shared so that it fits if it can."""
        key = (ctx_tokens, pair, step)
        if key not in self._trials:
            self._trials[key] = self._try_splits(ctx_tokens, pair, step)
        return self._trials[key]

    def longest(self, pair: KvPair, step: Step, least: int, top: int) -> int:
        """The longest window from `least` to `top` that fits with this placement; 0 when none does."""
        whole = self.trial(top, pair, step)
        if whole.fits:
            return top
        first = self.trial(least, pair, step)
        if least >= top or not first.fits:
            return 0

        def spare(steps: int) -> int:
            return self.trial(steps * WINDOW_STEP, pair, step).spare_bytes

        low, high = least // WINDOW_STEP, top // WINDOW_STEP
        return max(least, last_holding(low, first.spare_bytes, high, whole.spare_bytes, spare) * WINDOW_STEP)

    def first_fitting(self, ctx_tokens: int, pair: KvPair, ladder: list[Step]) -> int | None:
        """The best rung that fits at this window; rungs are sorted from most on the GPU to least."""
        last = len(ladder) - 1

        def spare(rung_from_the_end: int) -> int:
            return self.trial(ctx_tokens, pair, ladder[last - rung_from_the_end]).spare_device_bytes

        if last < 0 or spare(0) < 0:
            return None
        if spare(last) >= 0:
            return 0
        return last - last_holding(0, spare(0), last, spare(last), spare)

    def launch(self, ctx_tokens: int, pair: KvPair, step: Step, split: tuple[float, ...] = ()) -> Launch:
        """The launch of a window of one slot."""
        asked = self.question
        return Launch(
            ctx_tokens=ctx_tokens * asked.slots,
            ubatch=asked.ubatch,
            batch=asked.batch or effective_batch(asked.ubatch, ctx_tokens),
            type_k=pair.k,
            type_v=pair.v,
            slots=asked.slots,
            kv_unified=asked.kv_unified,
            flash_attn=asked.flash_attn,
            swa_full=asked.swa_full,
            rollback_snapshots=asked.rollback_snapshots,
            kv_offload=not asked.kv_in_ram,
            gpu_layers=None if step.gpu_layers >= self.all_layers else step.gpu_layers,
            cpu_moe_layers=step.cpu_moe_layers,
            devices=len(self.room.device_bytes),
            tensor_split=split,
            outputs=asked.outputs,
            draft_tokens=asked.draft_tokens,
        )

    def balanced(self, ctx_tokens: int, pair: KvPair, step: Step) -> Trial:
        """The same launch, with the layers shared so that the fullest device is as empty as it can be."""
        found = self.trial(ctx_tokens, pair, step)
        shared = len(self.room.device_bytes) > 1 and not self.question.tensor_split
        rooms = self._filled.get((ctx_tokens, pair, step), self.room.device_bytes)
        if not shared or not found.fits_devices or found.launch.tensor_split == self._even(step, rooms):
            return found
        low, high = 0.0, 1.0
        for _ in range(_BALANCE_ROUNDS):
            middle = (low + high) / 2
            counts = self._counts(ctx_tokens, pair, step, middle, rooms)
            if counts is None:
                low = middle
            else:
                high, found = middle, self._judge(self.launch(ctx_tokens, pair, step, shares_of(counts)), pair)
        return found

    def _try_splits(self, ctx_tokens: int, pair: KvPair, step: Step) -> Trial:
        devices = len(self.room.device_bytes)
        if devices < 2 or self.question.tensor_split:
            # A plan that fell back to the CPU has no devices left to share between.
            split = self.question.tensor_split if devices > 1 else ()
            return self._judge(self.launch(ctx_tokens, pair, step, split), pair)
        for rooms in self.room.in_turn:
            found = self._shared(ctx_tokens, pair, step, rooms)
            self._filled[ctx_tokens, pair, step] = rooms
            if found.fits_devices:
                break
        return found

    def _shared(self, ctx_tokens: int, pair: KvPair, step: Step, rooms: tuple[int, ...]) -> Trial:
        """Layers shared among the devices that have a room here, so that each holds its part if that can be."""
        first = self._judge(self.launch(ctx_tokens, pair, step, self._even(step, rooms)), pair)
        if first.fits_devices or self._hopeless(first, rooms):
            return first
        counts = self._counts(ctx_tokens, pair, step, 1.0, rooms)
        if counts is None:
            return first
        return self._judge(self.launch(ctx_tokens, pair, step, shares_of(counts)), pair)

    def _even(self, step: Step, rooms: tuple[int, ...]) -> tuple[float, ...]:
        """Layers by the room of the devices: right whenever all layers weigh the same."""
        return shares_of(proportional(rooms, min(step.gpu_layers, self.all_layers)))

    def _counts(
        self, ctx_tokens: int, pair: KvPair, step: Step, share: float, rooms: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """A distribution under which every device stays below this share of its room."""
        *others, last = rooms
        limits = (*others, last - self.room.growing(ctx_tokens, pair))
        launch = self.launch(ctx_tokens, pair, step)
        factor = self.room.compute_factor
        units = min(step.gpu_layers, self.all_layers)
        first_unit = self.all_layers - units
        load = load_of_units(self.table, launch, cuda=self.room.cuda, compute_factor=factor)

        def fits(counts: tuple[int, ...], device: int) -> bool:
            if self.room.ranks and not counts[device]:
                return True
            start = first_unit + sum(counts[:device])
            return load(start, start + counts[device], device == 0) <= limits[device] * share

        counts = filled_in_order(len(limits), units, fits, self._last_counts)
        self._last_counts = counts or self._last_counts
        return counts

    @staticmethod
    def _hopeless(trial: Trial, rooms: tuple[int, ...]) -> bool:
        """Weights and caches alone are more than these devices together have, however they are shared."""
        held = sum(device.model_bytes + device.context_bytes for device in trial.loads)
        return held + trial.growing_bytes > sum(rooms)

    def _use(self, launch: Launch) -> Projection:
        use = project(self.table, launch, cuda=self.room.cuda, replays=False)
        factor = self.room.compute_factor
        if factor == 1.0:
            return use
        scaled = (replace(device, compute_bytes=int(device.compute_bytes * factor)) for device in use.devices)
        return replace(use, devices=tuple(scaled))

    def _judge(self, launch: Launch, pair: KvPair) -> Trial:
        use = self._use(launch)
        growing = self.room.growing(launch.ctx_tokens // launch.slots, pair)
        host_bytes = use.host.total_bytes
        limits = list(self.room.device_bytes)
        if limits:
            limits[-1] -= growing
        else:
            host_bytes += growing
        spares = [limit - device.total_bytes for device, limit in zip(use.devices, limits, strict=True)]
        spare_ram = UNLIMITED if self.room.ram_bytes is None else self.room.ram_bytes - host_bytes
        return Trial(launch, use, growing, min(spares, default=UNLIMITED), spare_ram)
