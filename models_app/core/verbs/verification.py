"""`plan --verify`: the run of llama-fit-params, and how the comparison is written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpus_app.core.probes.program import ProgramRun, run_program
from models_app.core.catalog import Header, MemoryUse, Plan
from models_app.core.errors import LaunchError, UsageError, VerifyError
from models_app.core.launch.tokens import rules_for, split_command
from models_app.core.planning.table import model_table
from models_app.core.planning.verify import Measured
from models_app.core.plans.verification import QUIET, Verification, find_fit_params, verify_plan
from models_app.core.units import MIB
from models_app.core.verbs.answers import shown
from models_app.core.verbs.environment import Environment

_TERMS = ("model_bytes", "context_bytes", "compute_bytes")
_AGREES_PERCENT = 5.0
"""Above, nobody would call it agreement."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check as it is written; `done` says that there was an answer to compare with."""

    json: dict[str, Any]
    lines: list[str]
    done: bool


class Verifier:
    """Checks plans with one llama-fit-params."""

    def __init__(self, options: argparse.Namespace, environment: Environment) -> None:
        """Raises UsageError for arguments that cannot be split into words."""
        self._named: str = options.verify
        self._variables = {**environment.variables, **QUIET}
        try:
            self._more = [
                word
                for text in options.verify_arg or ()
                for word in split_command(text, rules_for(environment.platform))
            ]
        except LaunchError as error:
            raise UsageError(f"--verify-arg: {error}") from error

    def verify(self, header: Header, plan: Plan) -> Verification:
        """Raises VerifyError."""
        binary = find_fit_params(self._named, self._variables.get("PATH"))
        return verify_plan(plan, model_table(header), binary, self._more, self._run)

    def answer(self, header: Header, plan: Plan) -> Check:
        """The comparison, or why there is none."""
        try:
            verification = self.verify(header, plan)
        except VerifyError as error:
            failed = {"binary": self._named, "error": {"code": error.code, "message": error.message}}
            return Check(failed, [f"  not verified: {shown(error.message)}", ""], done=False)
        return Check(verification_json(verification), verification_lines(verification), done=True)

    def _run(self, words: Sequence[str], seconds: float) -> ProgramRun:
        return run_program(words, seconds, self._variables)


def verification_json(verification: Verification) -> dict[str, Any]:
    """The object under `verify`; differences are measured minus projected."""
    comparison = verification.comparison
    return {
        "binary": verification.binary,
        "build": verification.build,
        **_places(comparison.measured),
        "difference": _places(comparison.difference),
        "agreement_percent": comparison.agreement_percent,
        "notes": list(verification.notes),
    }


def _places(figures: Measured) -> dict[str, Any]:
    devices = [{"name": use.name, **_terms(use)} for use in figures.devices]
    return {"devices": devices, "host": _terms(figures.host)}


def _terms(use: MemoryUse) -> dict[str, int]:
    return {term: getattr(use, term) for term in _TERMS}


def verification_lines(verification: Verification) -> list[str]:
    """A small table: each figure of llama.cpp in MiB, and by how much it is more than ours."""
    comparison, build = verification.comparison, shown(verification.build)
    percent = comparison.agreement_percent
    verdict = f"agrees to {percent:.1f} %" if percent <= _AGREES_PERCENT else f"differs by {percent:.1f} %"
    lines = [
        f"  llama.cpp {verdict}{f', version {build}' if build else ''}",
        f"  {'MiB (minus planned)':<20}" + "".join(f"{name:>18}" for name in ("weights", "context", "compute")),
    ]
    measured, difference = comparison.measured, comparison.difference
    pairs = zip((*measured.devices, measured.host), (*difference.devices, difference.host), strict=True)
    for theirs, off in pairs:
        cells = (f"{getattr(theirs, term) // MIB:,} ({getattr(off, term) // MIB:+,})" for term in _TERMS)
        lines.append(f"  {shown(theirs.name):<20}" + "".join(f"{cell:>18}" for cell in cells))
    return [*lines, *(f"  note: {note}" for note in verification.notes), ""]
