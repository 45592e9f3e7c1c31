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
from models_app.core.catalog import Plan
from models_app.core.errors import VerifyError
from models_app.core.launch.fit_params import PROGRAM, SERVER, fit_params_words, flag_value, has_flag
from models_app.core.planning.model_facts import ModelTable
from models_app.core.planning.projection import project
from models_app.core.planning.verify import (
    Comparison,
    compare,
    fit_params_launch,
    parse_fit_params,
    parse_version,
    streams_weights,
)

FIT_PARAMS_SECONDS = 60.0
VERSION_SECONDS = 10.0
_ASKING = ("--no-repack", "--fit-print", "on")
"""Weights that the CPU repacks lie in a buffer of their own, which llama-fit-params leaves out of the host's line."""
_SHOWN_CHARACTERS = 300
_LOG_PREFIX = re.compile(r"^[0-9][0-9.]* [A-Z] ")
_HARMLESS = "load_backend"

Run = Callable[[Sequence[str], float], ProgramRun]
"""Runs an argument list within so many seconds. Raises OSError where it cannot be started."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What llama.cpp says of one plan. `build` is "" where the program does not tell."""

    binary: str
    build: str
    comparison: Comparison
    notes: tuple[str, ...] = ()


def find_fit_params(binary: str, search_path: str | None = None) -> str:
    """The path of llama-fit-params: `binary` itself, or the one beside it where it is a llama-server.

    A name without a folder is looked for in `search_path`. Raises VerifyError (`missing`).
    """
    found = shutil.which(binary, path=search_path)
    name = os.path.basename(binary)
    if not name.startswith(SERVER):
        if found is None:
            raise VerifyError("missing", f"{binary} is not there, or is no executable file")
        return found
    server = found or binary
    sibling = name.replace(SERVER, PROGRAM, 1)
    # A link to the server, as package managers make them, need not have its companions beside it.
    for folder in (os.path.dirname(server), os.path.dirname(os.path.realpath(server))):
        beside = shutil.which(os.path.join(folder or os.curdir, sibling))
        if beside is not None:
            return beside
    raise VerifyError("missing", f"there is no {sibling} beside {server}; build it (target {PROGRAM}) or name its path")


def verify_plan(plan: Plan, table: ModelTable, binary: str, more_words: Sequence[str], run: Run) -> Verification:
    """Run `binary`, a llama-fit-params, with the plan's command and more words, and compare. Raises VerifyError."""
    placement, argv = plan.placement, plan.argv
    if placement is None or plan.projection is None:
        raise VerifyError("unplanned", f"there is no plan to check: {plan.skip_reason}")
    if plan.projection.engine == "classic":
        raise VerifyError("unplanned", "there is nothing to compare: the header lacks the model's dimensions")
    words = [binary, *fit_params_words(argv), *more_words, *_ASKING]
    measured = parse_fit_params(_answer(binary, words, run))
    launch = fit_params_launch(
        placement,
        len(plan.projection.devices),
        flash_attn=flag_value(argv, "flashAttn") != "off",
        swa_full=has_flag(argv, "--swa-full"),
    )
    comparison = compare(measured, project(table, launch, cuda=streams_weights(measured)))
    notes: tuple[str, ...] = ()
    if placement.slots > 1:
        notes = (f"{PROGRAM} knows no common pool, so both sides are for a part of the window per slot",)
    return Verification(binary, _build(binary, run), comparison, notes)


def _answer(binary: str, words: Sequence[str], run: Run) -> str:
    """Standard output of a run that went well."""
    name = os.path.basename(binary)
    try:
        answer = run(words, FIT_PARAMS_SECONDS)
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


def _build(binary: str, run: Run) -> str:
    try:
        answer = run([binary, "--version"], VERSION_SECONDS)
    except OSError:
        return ""
    return parse_version(f"{answer.stderr}\n{answer.stdout}")
