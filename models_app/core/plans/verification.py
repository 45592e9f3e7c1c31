"""A plan checked by llama.cpp itself: llama-fit-params is run with the plan's command, its figures compared with ours.

It loads no weights and allocates nothing. Running the program is handed in, so that this stays a pure rule.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpus_app.core.probes.program import ProgramRun
from models_app.core.catalog import Plan, Projection
from models_app.core.errors import VerifyError
from models_app.core.launch.fit_params import PROGRAM, SERVER, fit_params_words, flag_value, has_flag
from models_app.core.planning.model_facts import ModelTable
from models_app.core.planning.projection import project
from models_app.core.planning.verify import (
    Comparison,
    Measured,
    compare,
    fit_params_launch,
    parse_fit_params,
    parse_version,
    streams_weights,
)

FIT_PARAMS_SECONDS = 60.0
VERSION_SECONDS = 10.0
QUIET = {"GGML_NO_BACKTRACE": "1"}
"""Variables of a run: a failed assertion is to say its line and end, not to start a debugger."""
_ASKING = ("--no-repack", "--fit-print", "on")
"""Weights that the CPU repacks lie in a buffer of their own, which llama-fit-params leaves out of the host's line."""
_SHOWN_CHARACTERS = 300
_LOG_PREFIX = re.compile(r"^[0-9][0-9.]* [A-Z] ")
_HARMLESS = "load_backend"

Run = Callable[[Sequence[str], float], ProgramRun]
"""Runs an argument list within so many seconds. Raises OSError where it cannot be started."""


@dataclass(frozen=True, slots=True)
class Question:
    """What llama-fit-params is asked about one plan, and our own figures for the launch that it makes of that.

    Devices that copy host weights in hold more: which of the two projections counts, its answer tells.
    """

    words: tuple[str, ...]
    plain: Projection
    streaming: Projection
    notes: tuple[str, ...] = ()

    def compared(self, measured: Measured) -> Comparison:
        """Raises VerifyError where llama.cpp sees other devices."""
        return compare(measured, self.streaming if streams_weights(measured) else self.plain)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One answer of llama-fit-params. `build` is "" where the program does not tell."""

    measured: Measured
    build: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What llama.cpp says of one plan."""

    binary: str
    build: str
    comparison: Comparison
    notes: tuple[str, ...] = ()


def find_fit_params(binary: str, search_path: str | None = None) -> str:
    """The path of llama-fit-params: `binary` itself, or the one beside it where it is a llama-server.

    A name without a folder is looked for in `search_path`. Raises VerifyError (`missing`).
    """
    if os.path.basename(binary).startswith(SERVER):
        return find_beside(binary, search_path)
    found = shutil.which(binary, path=search_path)
    if found is None:
        raise VerifyError("missing", f"{binary} is not there, or is no executable file")
    return found


def find_beside(server: str, search_path: str | None = None) -> str:
    """The llama-fit-params in the folder of a server, whatever that is called. Raises VerifyError (`missing`)."""
    found = shutil.which(server, path=search_path) or server
    name = os.path.basename(server)
    sibling = name.replace(SERVER, PROGRAM, 1) if name.startswith(SERVER) else PROGRAM
    # A link to the server, as package managers make them, need not have its companions beside it.
    for folder in (os.path.dirname(found), os.path.dirname(os.path.realpath(found))):
        beside = shutil.which(os.path.join(folder or os.curdir, sibling))
        if beside is not None:
            return beside
    raise VerifyError("missing", f"there is no {sibling} beside {found}; build it (target {PROGRAM}) or name its path")


def question_of(plan: Plan, table: ModelTable) -> Question:
    """What to ask about a plan. Raises VerifyError (`unplanned`) where there is nothing to compare."""
    placement, argv = plan.placement, plan.argv
    if placement is None or plan.projection is None:
        raise VerifyError("unplanned", f"there is no plan to check: {plan.skip_reason}")
    if plan.projection.engine == "classic":
        raise VerifyError("unplanned", "there is nothing to compare: the header lacks the model's dimensions")
    launch = fit_params_launch(
        placement,
        len(plan.projection.devices),
        flash_attn=flag_value(argv, "flashAttn") != "off",
        swa_full=has_flag(argv, "--swa-full"),
    )
    notes: tuple[str, ...] = ()
    if placement.slots > 1:
        notes = (f"{PROGRAM} knows no common pool, so both sides are for a part of the window per slot",)
    plain, streaming = (project(table, launch, cuda=cuda) for cuda in (False, True))
    return Question(tuple(fit_params_words(argv)), plain, streaming, notes)


def measure(binary: str, words: Sequence[str], run: Run, seconds: float) -> Measurement:
    """Run `binary`, a llama-fit-params, with the words of a question. Raises VerifyError."""
    measured = parse_fit_params(_answer(binary, [binary, *words, *_ASKING], run, seconds))
    return Measurement(measured, build_of(binary, run))


def verify_plan(plan: Plan, table: ModelTable, binary: str, more_words: Sequence[str], run: Run) -> Verification:
    """Run `binary`, a llama-fit-params, with the plan's command and more words, and compare. Raises VerifyError."""
    question = question_of(plan, table)
    seen = measure(binary, [*question.words, *more_words], run, FIT_PARAMS_SECONDS)
    return Verification(binary, seen.build, question.compared(seen.measured), question.notes)


def _answer(binary: str, words: Sequence[str], run: Run, seconds: float) -> str:
    """Standard output of a run that went well."""
    name = os.path.basename(binary)
    try:
        answer = run(words, seconds)
    except OSError as error:
        raise VerifyError("not-started", f"{binary} cannot be run: {error.strerror or error}") from error
    if answer.exit_code is None:
        raise VerifyError("timeout", f"{name} was stopped: no answer within its time limit")
    if answer.exit_code != 0:
        ending = f"died of signal {-answer.exit_code}" if answer.exit_code < 0 else "refused the command"
        raise VerifyError("refused", f"{name} {ending}: {_complaint(answer.stderr)}")
    return answer.stdout


def _complaint(log: str) -> str:
    """The line of a log that says most about what went wrong."""
    lines = [_LOG_PREFIX.sub("", line.strip()) for line in log.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_HARMLESS)]
    for word in ("error", "failed", ""):
        for line in lines:
            if word in line.lower():
                return line.removeprefix("error: ")[:_SHOWN_CHARACTERS]
    return "it did not say why"


def build_of(binary: str, run: Run) -> str:
    """The build that the program names, "" where it names none."""
    try:
        answer = run([binary, "--version"], VERSION_SECONDS)
    except OSError:
        return ""
    return parse_version(f"{answer.stderr}\n{answer.stdout}")
