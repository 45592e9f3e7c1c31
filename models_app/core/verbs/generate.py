"""`generate --models DIR… -o FILE`, `generate --settings FILE -o FILE`: a planned and validated router config."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from models_app.core.errors import ExportError, UsageError
from models_app.core.verbs.answers import FAILED, OK, shown
from models_app.core.verbs.budgets import add_budget_options
from models_app.core.verbs.environment import Environment

if TYPE_CHECKING:
    from gpus_app.core.budget import Budget
    from models_app.core.catalog import Header
    from models_app.core.export.llama_swap import Options
    from models_app.core.generate import Generated
    from models_app.core.plans.engines.request import Surroundings
    from models_app.core.settings import Override, Settings
    from models_app.core.settings_files.pair import Pair
    from models_app.core.verbs.generate_inputs import Inputs
    from models_app.core.verbs.scan import Scanned

DIALECTS = ("llama-swap", "quartermaster", "llama-server")
PIPE = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this verb."""
    parser.add_argument("--models", action="append", default=[], metavar="DIR", help="a models folder; repeatable")
    parser.add_argument("--settings", metavar="FILE", help="a generate file: settings and overrides")
    parser.add_argument("--sidecar", metavar="FILE", help="its sidecar (the one beside it)")
    add_budget_options(parser)
    parser.add_argument("--dialect", choices=DIALECTS, default=DIALECTS[0], help="whose file to write (llama-swap)")
    parser.add_argument("--backend", action="append", default=[], metavar="KIND=PATH", help="an executable")
    parser.add_argument("--timestamp", metavar="TEXT", help="text of the time in the first line (now)")
    parser.add_argument("--report", metavar="FILE.json", help="write what became of every file")
    parser.add_argument("--no-cache", action="store_true", help="read every header afresh")
    parser.add_argument("-o", "--output", required=True, metavar="FILE|-", help="the file to write, - for a pipe")


def run(options: argparse.Namespace, environment: Environment) -> int:
    """0 when the file was written, whatever was skipped; 1 when it could not be; 2 for wrong usage."""
    _check(options)
    if options.settings:
        return _run_from_files(options, environment)
    from models_app.core.verbs.generate_inputs import from_options
    from models_app.core.verbs.generate_output import tell, write

    inputs = from_options(options)
    result = _generate(options, environment, inputs)
    if not tell(options, environment, result, inputs.folders):
        return FAILED
    write(options.output, result, environment)
    return OK


def _check(options: argparse.Namespace) -> None:
    if not options.models and not options.settings:
        raise UsageError("name the models with --models DIR, or a settings file with --settings FILE")
    if options.sidecar and not options.settings:
        raise UsageError("--sidecar goes with --settings")
    for given in filter(None, (options.settings, options.sidecar)):
        if not os.path.isfile(given):
            raise UsageError(
                f"settings file {shown(given)} {'is no file' if os.path.exists(given) else 'does not exist'}"
            )
        if options.output != PIPE and _same_file(given, options.output):
            raise UsageError(f"--output names the settings file {shown(given)}")
    if options.report and options.output != PIPE and _same_file(options.report, options.output):
        raise UsageError("--report and --output name the same file")


def _run_from_files(options: argparse.Namespace, environment: Environment) -> int:
    """As above, from a settings file. Where all its inputs are as they were, nothing is planned or written.

    A pipe, a report and headers read afresh are asked for to get something: then everything is made anew.
    """
    from models_app.core.settings_files.ensure import ensure
    from models_app.core.settings_files.pair import read_pair
    from models_app.core.verbs.generate_inputs import from_files, target_of
    from models_app.core.verbs.generate_output import tell, tell_written, write, write_companions

    target, made = target_of(options), []

    def generated(pair: Pair) -> Generated:
        for warning in pair.warnings:
            environment.stderr.write(f"warning {shown(warning)}\n")
        inputs = from_files(options, pair, environment.platform)
        result = _generate(options, environment, inputs)
        if not tell(options, environment, result, inputs.folders):
            raise ExportError(f"{shown(options.output)} stays as it is")
        return result

    def text(pair: Pair) -> str:
        made.append(generated(pair))
        write_companions(options.output, made[-1])
        return made[-1].text

    if options.output == PIPE or options.report or options.no_cache:
        write(options.output, generated(read_pair(target.settings_file, target.sidecar)), environment)
        return OK
    ensured = ensure(target, text, lock=_locked(options.settings))
    for match in ensured.pruned:
        environment.stderr.write(f"dropped from the sidecar, its file is gone: {shown(match)}\n")
    if ensured.written is None:
        environment.stderr.write(f"{shown(options.output)}: up to date\n")
    else:
        tell_written(options.output, made[-1], ensured.written, environment)
    return OK


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """One run at a time for one settings file. The lock ends with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows has none
        yield
        return
    with open(path, "rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _same_file(one: str, other: str) -> bool:
    target = os.path.realpath(one)
    return target == os.path.realpath(other) and (os.path.isfile(target) or not os.path.exists(target))


def _place(output: str, environment: Environment) -> Options:
    """Where the file will lie, nowhere for a pipe; and where this machine has its spawn guard."""
    from models_app.core.export.llama_swap import Options

    folder, name = ("", "") if output == PIPE else os.path.split(os.path.realpath(output))
    cache = os.path.abspath(environment.header_cache)
    return Options(folder, guard_program=environment.guard_program, header_cache=cache, file_name=name)


def _generate(options: argparse.Namespace, environment: Environment, inputs: Inputs) -> Generated:
    from models_app.core.discovery.roots import path_key
    from models_app.core.generate import generate
    from models_app.core.launch.tokens import rules_for
    from models_app.core.plans import plan_row
    from models_app.core.verbs.scan import scan

    found = scan(inputs.folders, environment, use_cache=not options.no_cache)
    settings = inputs.settings
    header_of = found.header_of
    around = _surroundings(found, environment, settings, header_of)
    rules = rules_for(environment.platform)
    planner = partial(plan_row, settings=settings, headers=header_of, surroundings=around, word_rules=rules)

    def budget_of(override: Override, model_class: str) -> Budget:
        return inputs.budget.with_device_for(override.vram_target_gb)

    return generate(
        found.inventory,
        lambda row, header, override: planner(
            row, header, override=override, budget=budget_of(override, row.model_class)
        ),
        header_of=header_of,
        settings=settings,
        overrides=inputs.overrides,
        fragments=inputs.fragments,
        same_path=lambda match, path: path_key(match, environment.platform) == path_key(path, environment.platform),
        budget_of=budget_of,
        timestamp=environment.now.isoformat(timespec="seconds") if options.timestamp is None else options.timestamp,
        dialect=options.dialect,
        options=_place(options.output, environment),
        word_rules=rules,
        on_row=lambda done, total, name: environment.note(f"planning {done}/{total} {shown(name)}"),
    )


def _surroundings(
    found: Scanned, environment: Environment, settings: Settings, header_of: Callable[[str], Header | None]
) -> Surroundings:
    from models_app.core.plans.engines.surroundings import surroundings_of

    return surroundings_of(
        found.components,
        environment.platform,
        header_of=header_of,
        is_gone=lambda path: not os.path.exists(path),
        vad_path=_vad_path(settings),
    )


def _vad_path(settings: Settings) -> str:
    """The voice detector of the audio.cpp build that is named, where it lies beside it."""
    from models_app.core.launch.executables import resolve_executable
    from models_app.core.plans.engines.surroundings import vad_candidates

    places = vad_candidates(resolve_executable(settings, "", "audiocpp").path)
    return next((os.path.abspath(place) for place in places if os.path.exists(place)), "")
