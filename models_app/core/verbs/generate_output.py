"""What `generate` says and writes: the file, what lies beside it, the report, and a line for all that matters."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from models_app.core.errors import ExportError
from models_app.core.export.target import Written, write_companion, write_target
from models_app.core.generate import Generated
from models_app.core.verbs.answers import shown
from models_app.core.verbs.environment import Environment

PIPE = "-"


def tell(options: argparse.Namespace, environment: Environment, result: Generated, folders: Sequence[str]) -> bool:
    """Say what became of the files, write the report where one is asked for; whether the text may be written."""
    environment.clear_note()
    _tell_files(result, environment, folders)
    if options.report:
        _write_report(options.report, result)
    blocking = [item for item in result.findings if item.severity == "block"]
    for item in blocking:
        environment.stderr.write(f"{item.rule}, line {item.line}: {shown(item.message)}\n")
    if blocking:
        environment.stderr.write(f"{shown(options.output)} was not written: its own check found the faults above\n")
    return not blocking


def _tell_files(result: Generated, environment: Environment, folders: Sequence[str]) -> None:
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


def write(output: str, result: Generated, environment: Environment) -> None:
    """The text into its file, or through a pipe. Raises `ExportError`."""
    if output == PIPE:
        _write_pipe(result.text, environment)
        return
    write_companions(output, result)
    tell_written(output, result, write_target(output, result.text), environment)


def write_companions(output: str, result: Generated) -> None:
    """The files beside the config."""
    folder = os.path.dirname(os.path.realpath(output))
    for companion in result.document.companions:
        write_companion(os.path.join(folder, companion.name), companion.text)


def tell_written(output: str, result: Generated, written: Written, environment: Environment) -> None:
    """What writing did, in words."""
    count = len(result.report.entries)
    summary = f"{count} model{'s' if count != 1 else ''}, {len(result.report.skipped)} skipped"
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
