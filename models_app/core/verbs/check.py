"""`check FILE --dialect D`: the findings of validation that need nothing but the file (web.md 11.4)."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from models_app.core.verbs.answers import FAILED, OK, shown, write_json
from models_app.core.verbs.environment import Environment

if TYPE_CHECKING:
    from models_app.core.export.findings import CheckFinding

DIALECTS = ("llama-swap", "quartermaster", "llama-server")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this verb."""
    parser.add_argument("file", metavar="FILE", help="a router's config; - reads standard input")
    parser.add_argument("--dialect", required=True, choices=DIALECTS, metavar="D", help=", ".join(DIALECTS))
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")


def run(options: argparse.Namespace, environment: Environment) -> int:
    """1 for a blocking finding and for a file that cannot be read, else 0."""
    # Validation is loaded only now, so that a wrong argument is answered at once.
    from models_app.core.export.findings import blocks

    findings = check_file(options.file, options.dialect, environment.platform)
    if options.json:
        write_json(environment.stdout, as_json(options.file, options.dialect, findings))
    else:
        _write_text(options.file, findings, environment)
    return FAILED if blocks(findings) else OK


def check_file(path: str, dialect: str, platform: str) -> list[CheckFinding]:
    """Findings of a file on disk; one that cannot be read has a single V-01."""
    from models_app.core.export.dialects import BY_SLUG
    from models_app.core.export.findings import BLOCK, finding
    from models_app.core.launch.tokens import rules_for

    try:
        data = _read(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return [finding("V-01", BLOCK, (), 0, f"the file cannot be read: {reason}")]
    return BY_SLUG[dialect].check(data, rules_for(platform))


def _read(path: str) -> bytes:
    """At most one byte more than a config may have: enough to know that it is too long."""
    from models_app.core.export.load import MAX_BYTES

    if path == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("it is not a regular file")
    with open(path, "rb") as stream:
        return stream.read(MAX_BYTES + 1)


def as_json(path: str, dialect: str, findings: Sequence[CheckFinding]) -> dict[str, Any]:
    """The answer of `--json`."""
    return {
        "file": path,
        "dialect": dialect,
        "findings": [
            {
                "rule": item.rule,
                "severity": item.severity,
                "where": item.where,
                "line": item.line,
                "message": item.message,
            }
            for item in findings
        ],
    }


def _write_text(path: str, findings: Sequence[CheckFinding], environment: Environment) -> None:
    for item in findings:
        place = f"{shown(path)}:{item.line}" if item.line else shown(path)
        environment.stdout.write(f"{place}: {item.severity} {item.rule}: {shown(item.message)}\n")
    if not findings:
        environment.stdout.write(f"{shown(path)}: no findings\n")
