"""PostgreSQL is restarted while a scan runs: the whole product in its processes, on a database of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.tasks.slow_reading import slow_mark
from tests.tasks.test_up import assert_it_ends_with_all_of_its_own, free_port, said
from tests.tasks.workers import environment, wait_for
from tests.tiny_models import tiny_gguf

pytestmark = [pytest.mark.worker, pytest.mark.slow, pytest.mark.once]
START = """
import sys
from quartermaster_site import up, workers
plain = workers.worker
def with_slow_reading(name, **options):
    return plain(name, **options | {"more": [*options.get("more", []), "--include", "tests.tasks.slow_reading"]})
workers.worker = with_slow_reading
raise SystemExit(up.main(sys.argv[1:]))
"""
MANY = 250


class Postgres:
    """A server with an empty database. It refuses to run as root, so root gives it to somebody without rights."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder, self.port = programs, folder, free_port()
        self.owner = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        if self.owner is not None:
            os.chown(folder, self.owner, -1)
        self._run("initdb", "-D", str(folder / "data"), "-U", "qm", "-A", "trust", "-E", "UTF8", "--no-sync")
        self._control("start")

    @property
    def url(self) -> str:
        return f"postgresql://qm@127.0.0.1:{self.port}/postgres"

    def ask(self, question: str) -> list[tuple[object, ...]]:
        with closing(psycopg.connect(self.url)) as connection:
            return connection.execute(question).fetchall()

    def restart(self) -> None:
        """As an operator does in a hurry: whoever is connected is thrown out, what was not confirmed is gone."""
        self._control("restart", "-m", "immediate")

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def _control(self, *words: str) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options, *words
        )

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        subprocess.run(command, user=self.owner, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, timeout=60)


@pytest.fixture
def postgres():
    places = [Path(path).parent for path in (shutil.which("initdb"),) if path]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    programs = next((place for place in places if (place / "pg_ctl").exists()), None)
    if programs is None:
        pytest.skip("no PostgreSQL server here")
    folder = Path(tempfile.mkdtemp(prefix="qm-pg-"))  # where somebody else may go, and with a short path for its socket
    folder.chmod(0o711)
    server = Postgres(programs, folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


def test_a_scan_outlives_its_database(postgres, data_dir, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    slow_mark(models).touch()
    tiny_gguf(models / "m-0000-Q4_0.gguf", name="M")
    for number in range(1, MANY):
        (models / f"m-{number:04d}-Q4_0.gguf").hardlink_to(models / "m-0000-Q4_0.gguf")
    process = subprocess.Popen(
        [sys.executable, "-c", START, "--models", str(models), "--port", str(free_port())],
        env={**environment(data_dir), "QM_DATABASE_URL": postgres.url},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said(process, "scanning")
        wait_for(lambda: bool(postgres.ask("SELECT 1 FROM jobs_job WHERE kind = 'scan' AND done > 20")), 20)
        postgres.restart()
        slow_mark(models).unlink()
        scan = "SELECT state FROM jobs_job WHERE kind = 'scan'"
        wait_for(lambda: postgres.ask(scan) == [("succeeded",)], 30)
        assert postgres.ask("SELECT count(*), count(DISTINCT path) FROM models_app_row") == [(MANY, MANY)]
        wait_for(lambda: bool(postgres.ask("SELECT 1 FROM models_app_revision")), 30)
        assert_it_ends_with_all_of_its_own(process, signal.SIGTERM)
    finally:
        process.kill()
