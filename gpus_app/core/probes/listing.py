"""Asks a backend for its device list."""

from __future__ import annotations

from collections.abc import Mapping

from gpus_app.core.probes.program import run_program


def run_listing(executable: str, timeout_seconds: float, environment: Mapping[str, str]) -> str | None:
    """Standard output and error of `--list-devices` together; None when it failed and printed nothing."""
    try:
        answer = run_program([executable, "--list-devices"], timeout_seconds, environment)
    except OSError:
        return None
    text = "\n".join(part for part in (answer.stdout, answer.stderr) if part)
    return None if answer.exit_code != 0 and not text.strip() else text
