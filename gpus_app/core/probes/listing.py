"""Asks a backend for its device list. The one place that runs a registered executable for it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

ORDER_VARIABLE = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
"""The launch runs under it; a listing read without it would number a mismatched pair the other way round."""


def run_listing(executable: str, timeout_seconds: float, environment: Mapping[str, str]) -> str | None:
    """Standard output and error of `--list-devices` together; None when it failed and printed nothing."""
    name, value = ORDER_VARIABLE
    try:
        answer = subprocess.run(
            [executable, "--list-devices"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=timeout_seconds,
            env={**environment, name: value},
            check=False,
        )
        text, failed = answer.stdout.decode("utf-8", "replace"), answer.returncode != 0
    except subprocess.TimeoutExpired as error:
        text, failed = (error.output or b"").decode("utf-8", "replace"), True
    except OSError:
        return None
    return None if failed and not text.strip() else text
