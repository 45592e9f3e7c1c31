"""What becomes of a command: unchanged, with a shorter window, with less on the GPU, or refused (sizing.md 16)."""

from __future__ import annotations

from collections.abc import Sequence

from gpus_app.core.guard import MAX_VRAM, guard_cheap_cases
from gpus_app.core.units import GIB
from models_app.core.spawn_guard.command import Command, moved_from_outside, read_command
from models_app.core.spawn_guard.devices import launch_devices
from models_app.core.spawn_guard.facts import CHANGED, UNCHANGED, Decision, Facts, LeaveAlone, WantedFiles
from models_app.core.spawn_guard.options import GuardOptions
from models_app.core.spawn_guard.placing import Placing

LLAMA_SERVER = "llama-server"


def is_llama_server(argv: Sequence[str]) -> bool:
    return LLAMA_SERVER in argv[0].replace("\\", "/").rpartition("/")[2].lower()


def wanted_files(argv: Sequence[str]) -> WantedFiles:
    """Empty for a command that is left alone whatever its files say."""
    try:
        command = read_command(argv) if is_llama_server(argv) else None
    except LeaveAlone:
        command = None
    return WantedFiles(command.model, command.projector, command.drafter) if command else WantedFiles()


def decide(argv: Sequence[str], options: GuardOptions, facts: Facts) -> Decision:
    """The decision about one start. It never puts more on a GPU than was planned."""
    try:
        if is_llama_server(argv):
            return _about_llama(read_command(argv), options, facts)
        return _about_others(tuple(argv), options, facts)
    except LeaveAlone as reason:
        return Decision(UNCHANGED, tuple(argv), f"{UNCHANGED}: {reason}")


def _about_llama(command: Command, options: GuardOptions, facts: Facts) -> Decision:
    if name := moved_from_outside(facts.environment):
        raise LeaveAlone(f"the estimate does not follow {name}")
    if facts.header is None:
        raise LeaveAlone("the header of its model cannot be read")
    names = [name for name in command.given.get("device", "").split(",") if name]
    devices = launch_devices(facts, options, command.program, names)
    return Placing.of(command, options, facts.header, facts, devices).decision()


def _about_others(argv: tuple[str, ...], options: GuardOptions, facts: Facts) -> Decision:
    """Servers with a cap of their own, and models that must keep off the GPU. They use one device."""
    if not any(word.partition("=")[0] == MAX_VRAM or word.lower().endswith(".ggml") for word in argv):
        raise LeaveAlone("this program is not known")
    found = launch_devices(facts, options, argv[0])
    free_gib = found.devices[0].free_bytes / GIB
    changed = tuple(guard_cheap_cases(argv, free_gib))
    said = f"{free_gib:.2f} GiB of GPU memory is free"
    if changed == argv:
        return Decision(UNCHANGED, argv, f"{UNCHANGED}: {said}")
    after = [word for place, word in enumerate(changed) if place >= len(argv) or word != argv[place]]
    before = [word for word, new in zip(argv, changed, strict=False) if word != new]
    flag = f"{MAX_VRAM} " if before and not before[0].startswith(MAX_VRAM) else ""
    return Decision(CHANGED, changed, f"{flag}{' '.join(before) or 'added'} -> {' '.join(after)}: {said}")
