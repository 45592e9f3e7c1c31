"""Asking executables of this machine what they are. The host's side: no database, no Django.

Each is run with `--help`, then with what its help names of `--version` and `--list-devices`: argument lists, no shell,
a process group of its own that is killed with its limit, output capped (web.md J-11; sizing.md 15.1).
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gpus_app.core.backend_probe import ExecutableKey, ProbeAllowance
from gpus_app.core.probes.program import ProgramRun
from models_app.core.discovery.hostile_names import unsafe_reason
from models_app.core.launch.program_text import UNLISTED, ProgramFacts, program_devices, program_facts

MAX_KNOWN = 256
_EXCERPT = 200
Run = Callable[[Sequence[str], float], ProgramRun]
"""Runs an argument list within so many seconds. Raises OSError where it cannot be started."""

_KNOWN: dict[ExecutableKey, dict[str, Any]] = {}
"""Answers of this process by path, size and time, failures included: a build that hangs once is not asked again."""


@dataclass
class Prober:
    """The probes of one job: they share one allowance of time."""

    run: Run
    permitted: Iterable[str]
    """Folders in which an executable must lie, links resolved."""
    clock_seconds: Callable[[], float] = time.monotonic
    allowance: ProbeAllowance = field(default_factory=ProbeAllowance)

    def probe(self, path: str, *, fresh: bool = False) -> dict[str, Any]:
        """Everything that the file and the program say, as JSON. `problem` says in words what could not be learned."""
        try:
            real, status = self._looked_at(path)
        except _Unusable as problem:
            return {"problem": str(problem)}
        key = (real, status.st_size, status.st_mtime_ns)
        if fresh or key not in _KNOWN:
            if self.allowance.grant() <= 0:
                return {"problem": "not asked: the time for all probes of this job is used up; ask for it alone"}
            while len(_KNOWN) >= MAX_KNOWN:
                del _KNOWN[next(iter(_KNOWN))]
            _KNOWN[key] = {**self._asked(real), "size_bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
        return dict(_KNOWN[key])

    def _looked_at(self, path: str) -> tuple[str, os.stat_result]:
        if unsafe_reason(path):
            raise _Unusable("its path holds a control character")
        real = os.path.realpath(path)
        if not os.path.isabs(path) or not is_permitted(path, self.permitted):
            raise _Unusable("it lies outside the folders from which this host runs backends (QM_BACKEND_ROOTS)")
        try:
            status = os.stat(real)
        except (OSError, ValueError) as error:
            raise _Unusable(f"it is not there: {getattr(error, 'strerror', None) or error}") from error
        if not stat.S_ISREG(status.st_mode) or not os.access(real, os.X_OK):
            raise _Unusable("it is no executable file")
        return real, status

    def _asked(self, path: str) -> dict[str, Any]:
        try:
            help_run = self._answer(path, "--help")
        except _Unusable as problem:
            return {"problem": str(problem)}
        text = f"{help_run.stdout}\n{help_run.stderr}"
        facts, notes = program_facts(text), []
        answers: dict[str, str] = {}
        for flag in ("--version", "--list-devices"):
            if flag in (*facts.flags, *UNLISTED.get(facts.kind, ())):
                try:
                    run = self._answer(path, flag)
                    answers[flag] = f"{run.stdout}\n{run.stderr}"
                except _Unusable as problem:
                    notes.append(str(problem))
        facts = program_facts(text, answers.get("--version", ""))
        listing = answers.get("--list-devices")
        return {
            "problem": "" if facts.flags else f"its help names no flag{_last_words(help_run)}",
            "notes": notes,
            **_shown(facts),
            "banner_sha256": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
            "devices": None if listing is None else [asdict(device) for device in program_devices(listing)],
        }

    def _answer(self, path: str, flag: str) -> ProgramRun:
        """One run within what is left of the time. Raises _Unusable where it says nothing that can be used."""
        seconds = self.allowance.grant()
        if seconds <= 0:
            raise _Unusable(f"{flag} was not asked: the time for all probes is used up")
        started = self.clock_seconds()
        try:
            run = self.run([path, flag], seconds)
        except OSError as error:
            raise _Unusable(f"it cannot be started: {error.strerror or error}") from error
        finally:
            self.allowance.spend(self.clock_seconds() - started)
        if run.exit_code is None:
            raise _Unusable(f"{flag} did not end within {seconds:.0f} s and was killed{_last_words(run)}")
        if run.exit_code < 0:
            raise _Unusable(f"{flag} ended it with signal {-run.exit_code}{_last_words(run)}")
        if run.exit_code and not (run.stdout.strip() or run.stderr.strip()):
            raise _Unusable(f"{flag} failed with exit code {run.exit_code} and printed nothing")
        return run


class _Unusable(Exception):
    """Why nothing can be learned of a program, in words."""


def is_permitted(path: str, roots: Iterable[str]) -> bool:
    """Does a file lie in one of these folders, links resolved?"""
    real = os.path.realpath(path)
    return any(_inside(real, os.path.realpath(root)) for root in roots)


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _last_words(run: ProgramRun) -> str:
    lines = [line.strip() for line in f"{run.stdout}\n{run.stderr}".splitlines() if line.strip()]
    return f"; it said: {lines[-1][:_EXCERPT]}" if lines else ""


def _shown(facts: ProgramFacts) -> Mapping[str, Any]:
    return {
        "kind": facts.kind,
        "version": facts.version,
        "build": facts.build,
        "flags": list(facts.flags),
        "joined_lora_scale": facts.joined_lora_scale,
    }


def forget_answers() -> None:
    """Ask every program anew."""
    _KNOWN.clear()
