"""`up` as a person uses it: starts, scans, prints its links, stops all that it started, and says what is wrong."""

from __future__ import annotations

import errno
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from django.db import OperationalError

from gpus_app.core.errors import QuartermasterError
from quartermaster_site import processes, up
from tests.tasks.workers import ROOT, environment, wait_for
from tests.tiny_models import tiny_gguf

pytestmark = pytest.mark.worker


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(data_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "quartermaster_site.up", *arguments],
        env=environment(data_dir),
        cwd=data_dir.parent,
        stderr=subprocess.PIPE,
        text=True,
    )


def refuse(data_dir: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "quartermaster_site.up", *arguments],
        env=environment(data_dir),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def said(process: subprocess.Popen[str], wanted: str) -> str:
    """Lines until one has the wanted text."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if wanted in line:
            return "".join(lines)
    raise AssertionError(f"{wanted!r} was never said:\n{''.join(lines)}")


def assert_it_ends_with_all_of_its_own(process: subprocess.Popen[str], by: signal.Signals) -> None:
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(by)
    assert process.wait(30) == 0
    assert not psutil.wait_procs(children, timeout=3)[1]


def count(data_dir: Path, table: str, where: str = "1 = 1") -> int:
    with closing(sqlite3.connect(data_dir / "quartermaster.sqlite3")) as database:
        return int(database.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])


def test_from_nothing_to_a_text_and_back(tmp_path):
    models, data_dir = tmp_path / "models", tmp_path / "data"
    models.mkdir()
    tiny_gguf(models / "alpha-1b-Q4_0.gguf", name="Alpha")
    port = free_port()
    process = start(data_dir, "--models", "models", "--port", str(port))
    try:
        text = said(process, "scanning")
        assert f"running at http://127.0.0.1:{port}/" in text
        assert re.search(rf"http://127\.0\.0\.1:{port}/setup/\?token=[\w-]{{32}}", text)
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 4
        wait_for(lambda: count(data_dir, "models_app_revision") == 1, 30)
        assert count(data_dir, "models_app_row", "state = 'present'") == 1
        host = next(child for child in children if "host.local" in child.cmdline())
        assert "DJANGO_SETTINGS_MODULE" not in host.environ()
        assert not any(
            Path(item.path).suffix == ".sqlite3" and "quartermaster" in item.path for item in host.open_files()
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
    gone, alive = psutil.wait_procs(children, timeout=3)
    assert not alive
    assert "Traceback" not in process.stderr.read()


def test_a_dead_child_is_started_again(data_dir):
    process = start(data_dir, "--port", str(free_port()))
    try:
        said(process, "running at")
        worker = child_of(process, "host.local")
        worker.kill()
        assert "1 of at most 3 times in 5 minutes" in said(process, "the host process was killed")
        wait_for(lambda: child_of(process, "host.local") not in (None, worker), 20)
        assert_it_ends_with_all_of_its_own(process, signal.SIGTERM)
    finally:
        process.kill()


def child_of(process, word):
    children = psutil.Process(process.pid).children(recursive=True)
    return next((child for child in children if word in child.cmdline()), None)


def test_one_that_keeps_dying_ends_all_with_a_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(up, "_RESTART_PAUSE_SECONDS", 0.0)
    command = [sys.executable, "-c", "print('no such module'); raise SystemExit(3)"]
    child = processes.start("host", command, environment={}, folder=tmp_path, log_folder=tmp_path)
    with pytest.raises(QuartermasterError, match=r"(?s)ended with code 3\. Its log is .*host\.log .*no such module"):
        up._watch([child])
    shown = capsys.readouterr().err
    assert shown.count("it is started again") == 3
    assert "the host process keeps dying" in shown


def test_deaths_of_long_ago_do_not_count(tmp_path, monkeypatch):
    child = processes.start("host", [sys.executable, "-c", ""], environment={}, folder=tmp_path, log_folder=tmp_path)
    child.process.wait()
    child.deaths = [time.monotonic() - 10_000] * 3
    assert up._revive(child)
    child.process.wait()
    assert len(child.deaths) == 1


def test_killing_it_leaves_no_orphan(data_dir):
    if sys.platform != "linux":
        pytest.skip("only Linux tells children that their parent is gone")
    process = start(data_dir, "--port", str(free_port()))
    said(process, "running at")
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert not psutil.wait_procs(children, timeout=20)[1]


def test_two_on_one_data_folder(data_dir):
    process = start(data_dir, "--port", str(free_port()), "--no-worker")
    try:
        said(process, "running at")
        code, text = refuse(data_dir, "--port", str(free_port()))
        assert (code, text.count("\n")) == (2, 1)
        assert "another `quartermaster up` uses the data folder" in text
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()


def test_a_port_in_use(data_dir):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, text = refuse(data_dir, "--port", str(taken.getsockname()[1]))
    assert (code, text.count("\n")) == (2, 1)
    assert "is in use" in text
    assert "--port" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "/nowhere/at/all"], "the models folder /nowhere/at/all does not exist"),
        (["--models", __file__], "is not a folder"),
        (["--port", "70000"], "a port is a number from 1 to 65535"),
        (["--host", "203.0.113.7"], "no address of this machine"),
        (["--host", "not a name"], "no address of this machine"),
    ],
)
def test_wrong_usage_is_one_sentence(data_dir, arguments, message):
    code, text = refuse(data_dir, *arguments)
    assert (code, text.count("\n")) == (2, 1)
    assert message in text


def test_an_unwritable_data_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    code, text = refuse(tmp_path / "file" / "data")
    assert (code, text.count("\n")) == (2, 1)
    assert "data folder" in text


def test_a_wrong_variable_is_one_sentence(data_dir):
    done = subprocess.run(
        [sys.executable, "-m", "quartermaster_site.up"],
        env={**environment(data_dir), "QM_DATABASE_URL": "mysql://x"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "QM_DATABASE_URL must start with" in done.stderr


def test_a_broker_that_does_not_answer_is_told(data_dir, tmp_path):
    (tmp_path / "models").mkdir()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "quartermaster_site.up",
            "--port",
            str(free_port()),
            "--models",
            str(tmp_path / "models"),
        ],
        env={**environment(data_dir), "QM_REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"},
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "Jobs start when it does" in said(process, "Redis does not answer")
        said(process, "not scanned yet")
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("code", "words"), [(-9, "was killed"), (-15, "signal 15 (Terminated)"), (3, "ended with code 3")]
)
def test_the_end_of_a_child_in_words(code, words):
    assert words in up._end(code)


def test_a_stop_while_it_starts(tmp_path):
    process = start(tmp_path / "data", "--port", str(free_port()))
    try:
        time.sleep(1.5)
        assert_it_ends_with_all_of_its_own(process, signal.SIGINT)
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/data/address"), "/data/address cannot be used: No space"),
        (OperationalError("database or disk is full"), "the database cannot be used: database or disk is full."),
    ],
)
def test_a_full_disk_at_the_start_is_one_sentence(monkeypatch, capsys, error, sentence):
    def start(*_):
        raise error

    monkeypatch.setattr(up, "_start", start)
    monkeypatch.setattr(up.signal, "signal", lambda *_: None)
    assert up.main([]) == 2
    shown = capsys.readouterr().err
    assert sentence in shown
    assert "Traceback" not in shown
