"""The placement of one launch under what is free now, by the planner's own arithmetic (sizing.md 16.2 and 16.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpus_app.core.budget import Budget
from gpus_app.core.guard import gpu_fraction, moe_gpu_fraction, refuse_launch
from gpus_app.core.split import format_split
from gpus_app.core.units import GIB, from_gib
from models_app.core.catalog import Header
from models_app.core.planning.classic_placement import expert_share
from models_app.core.planning.fitting import Fitter, Trial
from models_app.core.planning.kv_types import KvPair
from models_app.core.planning.question import WINDOW_STEP, Question, Room, Step
from models_app.core.planning.room import room_of
from models_app.core.planning.table import ModelTable, model_table
from models_app.core.planning.wishes import Companions, Wishes, beside_bytes
from models_app.core.spawn_guard.command import Command, companions_of, question_of, step_of
from models_app.core.spawn_guard.devices import LaunchDevices
from models_app.core.spawn_guard.editing import value_of, with_value
from models_app.core.spawn_guard.facts import CHANGED, REFUSED, UNCHANGED, Decision, Facts, LeaveAlone
from models_app.core.spawn_guard.options import GuardOptions

LEAST_WINDOW_SHARE = 0.6
"""A window is never trimmed below this share of the configured one."""


@dataclass(frozen=True, slots=True)
class Placing:
    """One command, its model, and the devices that it will use."""

    command: Command
    options: GuardOptions
    header: Header
    table: ModelTable
    question: Question
    companions: Companions
    devices: LaunchDevices
    step: Step
    """As planned."""

    @classmethod
    def of(
        cls, command: Command, options: GuardOptions, header: Header, facts: Facts, devices: LaunchDevices
    ) -> Placing:
        """Raises LeaveAlone for a model whose memory cannot be told, and for a split that is not one of its devices."""
        table = model_table(header)
        if table.missing or not header.file_size_bytes:
            raise LeaveAlone(f"the memory of its model cannot be told: {table.missing or 'its size is not known'}")
        if command.given.get("splitMode") == "none":
            devices = _alone(devices, command.given.get("mainGpu", "0"))
        question = replace(question_of(command, header), tensor_split=_split(command, devices))
        companions = companions_of(command, header, facts.projector, facts.sizes)
        return cls(command, options, header, table, question, companions, devices, step_of(command, header))

    def decision(self) -> Decision:
        """The first that fits: as planned, with another split, with a shorter window, with less on the GPU."""
        planned = self._fitter(self.devices, self.question, capped=False).trial(self._window, self._pair, self.step)
        if planned.fits and self._held(planned) <= self._usable(self.devices):
            return Decision(UNCHANGED, self.command.argv, f"{UNCHANGED}: {self._why(planned)}")
        devices, question = self.devices, self.question
        if self._may_share_anew:
            devices, question = devices.main_last(), replace(question, tensor_split=())
        fitter = self._fitter(devices, question, capped=True)
        if fitter.trial(self._window, self._pair, self.step).fits:
            return self._changed(planned, devices, fitter, self.step, self._window)
        if window := self._shorter(fitter):
            return self._changed(planned, devices, fitter, self.step, window)
        step = self._with_less(fitter)
        if step is None:
            least = self._fitter(devices, question, capped=False).trial(self._window, self._pair, self._ladder()[-1])
            return self._refused(f"even with no layer on the GPU it {self._why(least, devices)}")
        fractions = self._fraction(self.step), self._fraction(step)
        if refuse_launch(*fractions, self.options.min_gpu_fraction):
            left, bar = (f"{100 * share:.0f} %" for share in (fractions[1], self.options.min_gpu_fraction))
            return self._refused(
                f"only {left} of the model would be on the GPU, {bar} is the least; {self._why(planned)}"
            )
        return self._changed(planned, devices, fitter, step, self._window)

    @property
    def _window(self) -> int:
        return self.command.window_tokens

    @property
    def _pair(self) -> KvPair:
        return self.command.pair

    @property
    def _may_share_anew(self) -> bool:
        """Only a ratio that the command itself gives is replaced; without one llama.cpp follows what is free."""
        return bool(self.command.knobs.tensor_split) and len(self.devices.devices) > 1

    def _shorter(self, fitter: Fitter) -> int:
        """The longest shorter window of one slot with which the planned placement fits, 0 where none does."""
        least = -int(-LEAST_WINDOW_SHARE * self._window // WINDOW_STEP) * WINDOW_STEP
        top = (self._window - 1) // WINDOW_STEP * WINDOW_STEP
        return fitter.longest(self._pair, self.step, least, top) if 0 < least <= top else 0

    def _with_less(self, fitter: Fitter) -> Step | None:
        """The best rung below the planned one that fits; experts that come back stay below what was planned."""
        ladder = self._ladder()
        rung = fitter.first_fitting(self._window, self._pair, ladder) if ladder else None
        if rung is None:
            return None
        step = ladder[rung]
        back = [Step(step.gpu_layers, count) for count in self._expert_rungs if count <= step.cpu_moe_layers]
        best = fitter.first_fitting(self._window, self._pair, back)
        return step if best is None else back[best]

    @property
    def _expert_rungs(self) -> list[int]:
        """Numbers of blocks whose experts may lie in RAM, the planned number first."""
        planned = self.step.cpu_moe_layers
        more = (block + 1 for block in self.table.expert_blocks) if self.table.is_moe else ()
        return [planned, *(count for count in more if count > planned)]

    def _ladder(self) -> list[Step]:
        """Rungs below the planned one, from most on the GPU to least: experts first, then layers."""
        layers, experts = self.step.gpu_layers, self._expert_rungs
        rungs = [Step(layers, count) for count in experts[1:]]
        return rungs + [Step(count, experts[-1]) for count in range(layers - 1, -1, -1)]

    def _fraction(self, step: Step) -> float:
        blocks = self.header.block_count
        experts = expert_share(self.header.architecture, self.header.expert_weight_share)
        share = moe_gpu_fraction(blocks, step.cpu_moe_layers, experts)
        return min(gpu_fraction(blocks, step.gpu_layers), share)

    # Memory

    def _budget(self, devices: LaunchDevices, *, capped: bool) -> Budget:
        free = Budget(device_bytes=devices.free_bytes, runtime=devices.runtime, capacity_bytes=devices.free_bytes)
        target = from_gib(self.options.target_gb)
        return free.with_target(target) if capped and 0 < target < free.target_bytes else free

    def _room(self, devices: LaunchDevices, question: Question, *, capped: bool) -> Room:
        wishes = Wishes(
            question,
            self._budget(devices, capped=capped),
            self.companions,
            headroom_bytes=from_gib(self.options.reserve_gb),
            compute_factor=self.options.compute_factor,
        )
        return room_of(self.header, self.table, wishes)

    def _fitter(self, devices: LaunchDevices, question: Question, *, capped: bool) -> Fitter:
        return Fitter(self.table, question, self._room(devices, question, capped=capped))

    def _usable(self, devices: LaunchDevices) -> int:
        """Bytes that all devices together may hold."""
        return self._budget(devices, capped=True).target_bytes

    def _needed(self, trial: Trial) -> list[int]:
        """Bytes on each device, with everything that lies beside llama.cpp's own."""
        budget = self._budget(self.devices, capped=False)
        each = budget.runtime_bytes + from_gib(self.options.reserve_gb)
        needed = [load.total_bytes + each for load in trial.loads]
        needed[-1] += beside_bytes(self.companions) + trial.growing_bytes
        return needed

    def _held(self, trial: Trial) -> int:
        return sum(self._needed(trial))

    # What is said and done

    def _why(self, trial: Trial, devices: LaunchDevices | None = None) -> str:
        free_bytes = (devices or self.devices).free_bytes
        needed = " + ".join(f"{size / GIB:.2f}" for size in self._needed(trial))
        usable = self._usable(self.devices)
        if usable < sum(free_bytes):
            return f"needs {needed} GiB of GPU memory, {usable / GIB:.2f} may be used"
        free = " + ".join(f"{size / GIB:.2f}" for size in free_bytes)
        return f"needs {needed} GiB of GPU memory, {free} GiB is free"

    def _refused(self, why: str) -> Decision:
        return Decision(REFUSED, self.command.argv, f"{REFUSED}: {why}")

    def _changed(self, planned: Trial, devices: LaunchDevices, fitter: Fitter, step: Step, window: int) -> Decision:
        argv = self.command.argv
        if window != self._window:
            argv = with_value(argv, "ctx", str(window * self.command.slots))
        if step.cpu_moe_layers != self.step.cpu_moe_layers:
            argv = with_value(argv, "nCpuMoe", str(step.cpu_moe_layers), "--n-cpu-moe")
        if step.gpu_layers != self.step.gpu_layers:
            argv = with_value(argv, "ngl", str(step.gpu_layers))
        if self._may_share_anew and step.gpu_layers > 0:
            argv = _shared_anew(argv, devices, fitter.balanced(window, self._pair, step).launch.tensor_split)
        if argv == self.command.argv:
            return Decision(UNCHANGED, argv, f"{UNCHANGED}: {self._why(planned)}")
        changes = "; ".join(_changes(self.command.argv, argv))
        return Decision(CHANGED, argv, f"{changes}: as planned it {self._why(planned)}")


def _alone(devices: LaunchDevices, main: str) -> LaunchDevices:
    """With `--split-mode none` one device holds everything."""
    number = int(main) if main.isdecimal() and len(main) < 4 else 0
    places = [number] if devices.names else [at for at, place in enumerate(devices.positions) if place == number]
    if not places or places[0] >= len(devices.devices):
        raise LeaveAlone(f"nobody knows which device --main-gpu {main[:20]} is")
    place = places[0]
    return LaunchDevices((devices.devices[place],), devices.runtime, devices.names[place : place + 1], (place,))


def _split(command: Command, devices: LaunchDevices) -> tuple[float, ...]:
    """The shares of the devices; without a ratio in the command llama.cpp follows what is free."""
    if len(devices.devices) < 2:
        return ()
    text = command.knobs.tensor_split
    if not text:
        return tuple(float(max(1, size)) for size in devices.free_bytes)
    try:
        shares = tuple(float(part) for part in text.replace("/", ",").split(","))
    except ValueError:
        shares = ()
    if len(shares) != len(devices.devices) or not all(0 <= share < 1e9 for share in shares) or sum(shares) <= 0:
        raise LeaveAlone(f"the split {text[:40]} is not one of {len(devices.devices)} devices")
    return shares


def _shared_anew(argv: tuple[str, ...], devices: LaunchDevices, split: Sequence[float]) -> tuple[str, ...]:
    """The new ratio, and the list of devices that it belongs to (sizing.md 16.3)."""
    argv = with_value(argv, "tensorSplit", format_split(split))
    if devices.names:
        argv = with_value(argv, "device", ",".join(devices.names))
        return with_value(argv, "mainGpu", str(len(devices.names) - 1))
    free = devices.free_bytes
    return with_value(argv, "mainGpu", str(devices.positions[free.index(max(free))]))


SHOWN = {
    "ctx": "-c",
    "ngl": "-ngl",
    "nCpuMoe": "--n-cpu-moe",
    "device": "--device",
    "mainGpu": "--main-gpu",
    "tensorSplit": "--tensor-split",
}
"""What may change: knob -> how it is called in the line that says so."""


def _changes(before: Sequence[str], after: Sequence[str]) -> list[str]:
    found = []
    for knob, flag in SHOWN.items():
        old, new = value_of(before, knob), value_of(after, knob)
        if old != new:
            found.append(f"{flag} {old or 'none'} -> {new}")
    return found
