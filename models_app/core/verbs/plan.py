"""`plan`: the search. Window, placement and command of a model under a budget, with the reasons."""

from __future__ import annotations

import argparse

from models_app.core.errors import UsageError
from models_app.core.verbs.budgets import add_budget_options, check_targets
from models_app.core.verbs.environment import Environment
from models_app.core.verbs.knobs import add_knobs, given_knobs, launch_of

_ANY_WINDOW = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this verb."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="GGUF files; any shard stands for its set")
    add_budget_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line and file")
    parser.add_argument("--no-cache", action="store_true", help="read every header afresh")
    add_knobs(parser, searched=True)
    group = parser.add_argument_group("check")
    group.add_argument(
        "--verify",
        metavar="BINARY",
        help="compare with what this llama-fit-params, or the one beside this llama-server, says",
    )
    group.add_argument(
        "--verify-arg", action="append", metavar="TEXT", help='more words for it: --verify-arg="--rpc HOST:PORT"'
    )


def run(options: argparse.Namespace, environment: Environment) -> int:
    """Exit code 0 all good, 1 some files failed, 2 wrong usage."""
    knobs = given_knobs(options)
    split = knobs.get("tensor_split")
    launch_of({"ctx": _ANY_WINDOW, **({"devices": len(split)} if split else {}), **knobs})
    targets = _targets(options.vram, knobs.get("devices"))
    if split is not None and targets is not None and len(split) != len(targets):
        raise UsageError(f"tensor-split needs one share for each device ({len(targets)}), not {len(split)}")
    if options.verify == "":
        raise UsageError("--verify needs the path of llama-fit-params or llama-server")
    if options.verify_arg and options.verify is None:
        raise UsageError("--verify-arg needs --verify")
    # Readers, probes and planning are loaded only now, so that a wrong argument is answered at once.
    from models_app.core.verbs import planning_run

    budget = planning_run.budget_for(targets, options.ram)
    return planning_run.run_files(options, knobs, budget, environment)


def _targets(vram: list[float] | None, devices: int | None) -> list[float] | None:
    """GiB per device; None leaves it to the probes. One figure for several devices is shared equally."""
    if devices == 0:
        return []
    check_targets(vram)
    if vram is None or devices is None or devices == len(vram):
        return vram
    if len(vram) == 1:
        return [vram[0] / devices] * devices
    raise UsageError(f"--vram names {len(vram)} devices, --devices {devices}")
