"""Asking the llama-fit-params of this machine about a launch. The host's side: no database, no Django."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from gpus_app.core.probes.program import ProgramRun, run_program
from models_app.core.catalog import MemoryUse
from models_app.core.errors import VerifyError
from models_app.core.launch.fit_params import PROGRAM
from models_app.core.plans.verification import FIT_PARAMS_SECONDS, QUIET, Run, build_of, find_beside, measure
from quartermaster_site import env
from quartermaster_site.jobs.host_tasks import Cancelled
from quartermaster_site.jobs.reporting import Reporter

MAX_WORDS = 200
_ARGUMENTS = "LLAMA_ARG_"
"""Variables that would change the launch."""


def look_for(report: Reporter, servers: Sequence[str], named: str) -> list[dict[str, str]]:
    """For each server the path of its llama-fit-params and its build, or why there is none."""
    found = []
    for number, server in enumerate(servers):
        report.progress("Looking", number, len(servers), current=server)
        try:
            program = find_program(server, named)
        except VerifyError as error:
            found.append({"server": server, "path": "", "build": "", "problem": error.message})
        else:
            build = build_of(program, _runner(report, {}))
            found.append({"server": server, "path": program, "build": build, "problem": ""})
    return found


def check(report: Reporter, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What llama.cpp would hold for the launch that `words` describe: bytes of each device and of the host, the build.

    `devices` is the number of devices that the plan is for. Raises VerifyError in words that a person can act on.
    """
    words = [str(word) for word in inputs["words"]]
    if len(words) > MAX_WORDS:
        raise VerifyError("unplanned", f"the command has more than {MAX_WORDS} words")
    program = find_program(str(inputs["server"]), str(inputs.get("named", "")))
    report.progress("Asking llama.cpp", 0, current=program)
    seconds = min(float(inputs.get("seconds", FIT_PARAMS_SECONDS)), FIT_PARAMS_SECONDS)
    seen = measure(program, words, _runner(report, inputs.get("variables", {})), seconds)
    devices, wanted = len(seen.measured.devices), inputs.get("devices", 0)
    if devices != wanted:
        names = ", ".join(use.name for use in seen.measured.devices) or "none"
        raise VerifyError("devices", f"the plan is for {wanted} GPU(s), but llama.cpp sees {devices} ({names})")
    return {
        "path": program,
        "build": seen.build,
        "devices": [_use(use) for use in seen.measured.devices],
        "host": _use(seen.measured.host),
    }


def find_program(server: str, named: str) -> str:
    """The program that somebody named, else the one beside the server. Raises VerifyError.

    Nothing is run whose name does not begin as that of llama-fit-params, or that lies outside of QM_BACKEND_ROOTS.
    """
    program = _wanted(server, named)
    real = os.path.realpath(program)
    roots = [os.path.realpath(root) for root in env.backend_roots()]
    if not any(os.path.commonpath([real, root]) == root for root in roots):
        raise VerifyError("missing", f"{program} lies outside the folders of QM_BACKEND_ROOTS")
    return program


def _wanted(server: str, named: str) -> str:
    if named:
        if not PurePath(named).name.startswith(PROGRAM) or not os.path.isabs(named):
            raise VerifyError("missing", f"{named} is not the whole path of a {PROGRAM}")
        if shutil.which(named) is None:
            raise VerifyError("missing", f"{named} is not there, or is no executable file")
        return named
    if not os.path.dirname(server) and shutil.which(server) is None:
        raise VerifyError("missing", f"there is no {server} on the path of this host's worker")
    return find_beside(server)


def _runner(report: Reporter, variables: Mapping[str, str]) -> Run:
    """Runs a program until its time is over or the job is cancelled; then the whole process group is gone."""
    kept = {name: value for name, value in env.program_environment().items() if not name.startswith(_ARGUMENTS)}
    environment = {**kept, **QUIET, **{str(name): str(value) for name, value in variables.items()}}

    def run(words: Sequence[str], seconds: float) -> ProgramRun:
        answer = run_program(words, seconds, environment, report.is_cancelled)
        if report.is_cancelled():
            raise Cancelled
        return answer

    return run


def _use(use: MemoryUse) -> dict[str, Any]:
    return {
        "name": use.name,
        "model_bytes": use.model_bytes,
        "context_bytes": use.context_bytes,
        "compute_bytes": use.compute_bytes,
    }
