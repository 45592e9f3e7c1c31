"""`generate --models DIR… -o FILE`: a folder of models in, a planned and validated router config out."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from models_app.core.errors import ExportError, UsageError
from models_app.core.verbs.answers import FAILED, OK, shown
from models_app.core.verbs.budgets import add_budget_options, budget_from
from models_app.core.verbs.environment import Environment

if TYPE_CHECKING:
    from gpus_app.core.budget import Budget
    from models_app.core.catalog import Header
    from models_app.core.generate import Generated
    from models_app.core.plans.engines.request import Surroundings
    from models_app.core.settings import BackendEntry, Settings
    from models_app.core.verbs.scan import Scanned

DIALECTS = ("llama-swap", "quartermaster", "llama-server")
PIPE = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this verb."""
    parser.add_argument("--models", action="append", required=True, metavar="DIR", help="a models folder; repeatable")
    add_budget_options(parser)
    parser.add_argument("--dialect", choices=DIALECTS, default=DIALECTS[0], help="whose file to write (llama-swap)")
    parser.add_argument("--backend", action="append", default=[], metavar="KIND=PATH", help="an executable")
    parser.add_argument("--timestamp", metavar="TEXT", help="text of the time in the first line (now)")
    parser.add_argument("--report", metavar="FILE.json", help="write what became of every file")
    parser.add_argument("--no-cache", action="store_true", help="read every header afresh")
    parser.add_argument("-o", "--output", required=True, metavar="FILE|-", help="the file to write, - for a pipe")


def run(options: argparse.Namespace, environment: Environment) -> int:
    """0 when the file was written, whatever was skipped; 1 when it could not be; 2 for wrong usage."""
    folders = [_folder(path) for path in options.models]
    if options.report and options.output != PIPE and _same_file(options.report, options.output):
        raise UsageError("--report and --output name the same file")
    backends = _backends(options.backend)
    budget = budget_from(options)
    result = _generate(options, environment, folders, backends, budget)
    environment.clear_note()
    _tell(result, environment, folders)
    if options.report:
        _write_report(options.report, result)
    blocking = [item for item in result.findings if item.severity == "block"]
    for item in blocking:
        environment.stderr.write(f"{item.rule}, line {item.line}: {shown(item.message)}\n")
    if blocking:
        environment.stderr.write(f"{shown(options.output)} was not written: its own check found the faults above\n")
        return FAILED
    _write(options.output, result, environment)
    return OK


def _folder(path: str) -> str:
    if not os.path.isdir(path):
        problem = "is not a folder" if os.path.exists(path) else "does not exist"
        raise UsageError(f"models folder {shown(path)} {problem}")
    return os.path.abspath(path)


def _same_file(one: str, other: str) -> bool:
    target = os.path.realpath(one)
    return target == os.path.realpath(other) and (os.path.isfile(target) or not os.path.exists(target))


def _backends(texts: Sequence[str]) -> tuple[BackendEntry, ...]:
    """Registry rows of the given executables; of several for one kind the last counts.

    llama-server comes first, named or not: without a pin it runs the chat models, whatever else can.
    """
    from models_app.core.discovery.hostile_names import unsafe_reason
    from models_app.core.launch.backends import KINDS, kind_of
    from models_app.core.settings import BackendEntry

    rows: dict[str, BackendEntry] = {}
    if texts:
        rows["llama"] = BackendEntry(id="llama", kind="llama", path="llama-server", default=True)
    for text in texts:
        spelling, _, path = text.partition("=")
        kind = kind_of(spelling)
        if kind is None:
            known = ", ".join(kind.name for kind in KINDS)
            raise UsageError(f"--backend {shown(text)}: the kind must be one of {known}")
        if not path.strip():
            raise UsageError(f"--backend {shown(text)}: write KIND=PATH")
        if problem := unsafe_reason(path.strip()):
            raise UsageError(f"--backend {shown(text)}: {problem}")
        rows[kind.name] = BackendEntry(id=kind.name, kind=kind.name, path=path.strip(), default=True)
    return tuple(rows.values())


def _settings(backends: tuple[BackendEntry, ...], budget: Budget) -> Settings:
    """Defaults, with these executables and budgets; executables that are not named are bare names."""
    from models_app.core.settings import Settings
    from models_app.core.units import to_gib

    return Settings(backends=backends, target_vram_gb=to_gib(budget.target_bytes), max_ram_gb=to_gib(budget.ram_bytes))


def _generate(
    options: argparse.Namespace,
    environment: Environment,
    folders: Sequence[str],
    backends: tuple[BackendEntry, ...],
    budget: Budget,
) -> Generated:
    from models_app.core.catalog import Header
    from models_app.core.export.llama_swap import Options
    from models_app.core.generate import generate
    from models_app.core.plans import plan_row
    from models_app.core.verbs.scan import scan

    found = scan(folders, environment, use_cache=not options.no_cache)
    settings = _settings(backends, budget)

    def header_of(path: str) -> Header | None:
        header = found.headers.get(path)
        return header if isinstance(header, Header) else None

    around = _surroundings(found, environment, settings, header_of)
    planner = partial(plan_row, settings=settings, budget=budget, headers=header_of, surroundings=around)
    config_folder, file_name = ("", "") if options.output == PIPE else os.path.split(os.path.realpath(options.output))
    return generate(
        found.inventory,
        lambda row, header, override: planner(row, header, override=override),
        header_of=header_of,
        settings=settings,
        budget_of=lambda override, model_class: budget,
        timestamp=environment.now.isoformat(timespec="seconds") if options.timestamp is None else options.timestamp,
        dialect=options.dialect,
        options=Options(config_folder=config_folder, file_name=file_name),
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


def _tell(result: Generated, environment: Environment, folders: Sequence[str]) -> None:
    """One line for everything that a person should know."""
    if not result.report.entries and not result.report.skipped:
        environment.stderr.write(f"note: no model file was found in {', '.join(map(shown, folders))}\n")
    for item in result.report.skipped:
        environment.stderr.write(f"skipped {shown(item['file'])}: {shown(item['reason'])}\n")
    for item in result.report.warnings:
        environment.stderr.write(f"warning {shown(item['file'])}: {shown(item['text'])}\n")
    for finding in result.findings:
        if finding.severity != "block":
            environment.stderr.write(f"{finding.severity} {finding.rule}: {shown(finding.message)}\n")


def _write_report(path: str, result: Generated) -> None:
    text = json.dumps(result.report.as_json(), indent=2, ensure_ascii=True) + "\n"
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ExportError(f"the report {shown(path)} cannot be written: {why}") from error


def _write(output: str, result: Generated, environment: Environment) -> None:
    from models_app.core.export.target import write_companion, write_target

    count = len(result.report.entries)
    summary = f"{count} model{'s' if count != 1 else ''}, {len(result.report.skipped)} skipped"
    if output == PIPE:
        _write_pipe(result.text, environment)
        return
    folder = os.path.dirname(os.path.realpath(output))
    for companion in result.document.companions:
        write_companion(os.path.join(folder, companion.name), companion.text)
    written = write_target(output, result.text)
    if not written.changed:
        environment.stderr.write(f"{shown(output)}: nothing changed, so the file was left alone ({summary})\n")
        return
    if written.replaced_foreign:
        environment.stderr.write(f"note: {shown(output)} held a text that was not generated here; it was replaced\n")
    environment.stderr.write(f"wrote {shown(output)}: {summary}\n")


def _write_pipe(text: str, environment: Environment) -> None:
    buffer = getattr(environment.stdout, "buffer", None)
    if buffer is None:
        environment.stdout.write(text)
    else:
        environment.stdout.flush()
        buffer.write(text.encode("utf-8"))
        buffer.flush()
