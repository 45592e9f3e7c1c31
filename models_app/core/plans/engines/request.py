"""What a class planner is asked, and how it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpus_app.core.budget import Budget
from models_app.core.catalog import Header, MemoryTerm, Plan, Reason, Row
from models_app.core.components.pool import Pool
from models_app.core.launch.audio_devices import AudioDevice
from models_app.core.launch.backends import executable_word
from models_app.core.launch.compose import Composition, compose
from models_app.core.launch.executables import Executable, resolve_executable
from models_app.core.launch.flag_table import FlagTable
from models_app.core.launch.ownership import custom_text, runs_text_only
from models_app.core.launch.tokens import POSIX
from models_app.core.settings import Override, Settings
from models_app.core.units import GIB, from_gib

FITS, SPILLS, OVER, UNPLANNED = "fits", "spills", "over", "unplanned"
WITH_COMPONENTS = frozenset({"image", "video", "audiocpp"})
"""Classes whose launches name further files of the host."""
_WINDOW_FLAGS: Mapping[str, tuple[str, ...]] = {
    "embedding": ("-c",),
    "decision": ("-c",),
    "hf": ("--max-model-len",),
    "llm": ("--max-model-len",),
}
NONE_DECLARED = "(none declared)"
RAW = FlagTable("raw", ())
"""For servers without a table of their own: a person's text is put behind the generated words as it is."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies beside a model on its host, as far as somebody looked.

    The defaults say that nothing is known: then pins count as they are written, and what is missing is said.
    """

    pool: Pool | None = None
    """Component files of the host's folders; None where nobody looked."""
    is_gone: Callable[[str], bool] = lambda path: False
    """Is a pinned file known to be missing?"""
    file_bytes: Callable[[str], int] = lambda path: 0
    """Size of a component file, 0 when it is not known."""
    header_of: Callable[[str], Header | None] = lambda path: None
    aligner_path: str = ""
    vad_path: str = ""
    audio_devices: tuple[AudioDevice, ...] = ()
    """What the audio.cpp build of this model lists."""
    flags: frozenset[str] | None = None
    """Flags that the help of this model's server names; None where nobody asked."""
    has_wav_voices: bool = False
    """Voices are registered from recordings with this server, which loads its encoders for them."""


@dataclass(frozen=True, slots=True)
class Request:
    """One launch to be planned. `override` is the profile's own, `served_id` its id in the file."""

    row: Row
    header: Header
    settings: Settings
    override: Override
    budget: Budget
    surroundings: Surroundings
    served_id: str
    device_count: int = 1
    """Devices that the server shares the model among; nearly all use one."""
    word_rules: str = POSIX
    """How the host's system splits a launch text."""

    def executable(self, engine: str = "") -> Executable:
        return resolve_executable(self.settings, self.override.backend, self.row.model_class, engine)

    def command(self, exe: str, lines: Sequence[str], table: FlagTable = RAW) -> Composition:
        """The program and its lines with the person's text laid over them."""
        return compose(
            table,
            [executable_word(exe), *lines],
            custom_text(self.override),
            self.word_rules,
            alone=table is not RAW and runs_text_only(self.override),
        )

    @property
    def size_gib(self) -> float:
        return self.row.size_bytes / GIB

    @property
    def devices(self) -> tuple[int, ...]:
        """Positions in the budget of the devices that the server uses: the preferred, of these the largest ones."""
        return tuple(sorted(self.budget.by_preference[: self.device_count]))


@dataclass(slots=True)
class Answer:
    """One plan in the making. Figures are GiB, as the classes' own rules give them."""

    command: Composition
    facts: Mapping[str, str]
    """What the comment above an entry says of the model, in written order."""
    est_vram_gib: float = 0.0
    est_ram_gib: float = 0.0
    verdict: str = FITS
    entry: dict[str, Any] = field(default_factory=dict)
    """Keys of the entry that this class writes."""
    engine: str = ""
    terms: list[MemoryTerm] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def usable_bytes(request: Request) -> int:
    """What the server may take in all: an equal part of every device that it uses."""
    return _usable_bytes(request.budget, request.device_count)


def _usable_bytes(budget: Budget, device_count: int) -> int:
    used = [budget.device_bytes[position] for position in budget.by_preference[:device_count]]
    return len(used) * min(used, default=0)


def on_its_devices(settings: Settings, budget: Budget, device_count: int = 1) -> Settings:
    """The target of the host is for all of its devices together: a server that uses one has that one's part."""
    if len(budget.device_bytes) < 2:
        return settings
    return replace(settings, target_vram_gb=min(settings.target_vram_gb, _usable_bytes(budget, device_count) / GIB))


def _placed(request: Request, item: MemoryTerm) -> MemoryTerm:
    """A term on the devices that the server uses, in equal parts."""
    used = request.devices
    whole = sum(item.device_bytes)
    if used in ((), (0,)) or not whole:
        return item
    sizes = [0] * (used[-1] + 1)
    for position in used:
        sizes[position] = whole // len(used)
    sizes[used[0]] += whole % len(used)
    return replace(item, device_bytes=tuple(sizes))


def plan_of(request: Request, answer: Answer, profile: str) -> Plan:
    """The finished plan of one profile."""
    command = answer.command
    warnings = [*answer.warnings, *command.warnings]
    if command.error:
        warnings.append(f"The launch text can't be taken apart: {command.error}")
    return Plan(
        profile_id=request.served_id,
        model_class=request.row.model_class,
        verdict=answer.verdict,
        placement=None,
        projection=None,
        terms=tuple(_placed(request, item) for item in answer.terms),
        est_vram_bytes=from_gib(answer.est_vram_gib),
        est_ram_bytes=from_gib(answer.est_ram_gib),
        target_bytes=usable_bytes(request),
        lines=command.lines,
        tokens=command.tokens,
        reasons=tuple(answer.reasons),
        warnings=tuple(warnings),
        unlisted=request.override.unlisted,
        profile=profile,
        as_written=command.alone,
        engine=answer.engine,
        facts=answer.facts,
        notes=tuple(answer.notes),
        entry=answer.entry,
    )


def skipped(row: Row, override: Override, reason: str) -> Plan:
    """A plan that says why there is none."""
    return Plan(
        profile_id=row.id,
        model_class=row.model_class,
        verdict=UNPLANNED,
        placement=None,
        projection=None,
        skip_reason=reason,
        unlisted=override.unlisted,
    )


def term(key: str, label: str, how: str, *, vram_gib: float = 0.0, ram_gib: float = 0.0) -> MemoryTerm:
    """One line of the memory table. Which device its VRAM lies on is settled with the plan."""
    return MemoryTerm(key, label, (from_gib(vram_gib),) if vram_gib > 0 else (), from_gib(ram_gib), how)


def window_tokens(plan: Plan) -> int:
    """The window that a plan runs with, 0 where a model has none."""
    if plan.placement is not None:
        return plan.placement.ctx_tokens
    flags = _WINDOW_FLAGS.get(plan.model_class, ())
    return max((_number(plan.argv, flag, 0) for flag in flags), default=0)


def number_after(command: Composition, flag: str, default: int) -> int:
    """The last whole number that a command gives to a flag, wherever it comes from."""
    return _number(command.argv, flag, default)


def _number(words: Sequence[str], flag: str, default: int) -> int:
    found = default
    for index, word in enumerate(words):
        name, mark, inline = word.partition("=")
        value = inline if mark else words[index + 1] if index + 1 < len(words) else ""
        if name == flag and value.strip().lstrip("-").isdigit():
            found = int(value)
    return found
