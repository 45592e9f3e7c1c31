"""Running a foreign program: arguments as they are, bounded in time and output, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpus_app.core.probes.program import MAX_OUTPUT_BYTES, run_program

PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def script(tmp_path):
    """`script("echo hello")` is the path of an executable that does so."""

    def write(body):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        return str(program)

    return write


def test_streams_exit_code_and_device_order(script):
    answer = run_program([script('echo "$1 $CUDA_DEVICE_ORDER"; echo no >&2; exit 3'), "a b; $HOME"], 5, PATH)
    assert answer.exit_code == 3
    assert answer.stdout == "a b; $HOME PCI_BUS_ID\n"
    assert answer.stderr == "no\n"


def test_output_is_capped_and_the_program_goes_on(script):
    answer = run_program([script("yes | head -c 3000000; echo done >&2")], 20, PATH)
    assert answer.exit_code == 0
    assert len(answer.stdout) == MAX_OUTPUT_BYTES
    assert answer.stderr == "done\n"


def test_bytes_that_are_no_text(script):
    assert run_program([script(r"printf '\377\n'")], 5, PATH).stdout == "\N{REPLACEMENT CHARACTER}\n"


def test_endless_output_ends_with_the_time(script):
    started = time.monotonic()
    assert run_program([script("yes")], 0.3, PATH).exit_code is None
    assert time.monotonic() - started < 5


def test_a_hanging_program_keeps_what_it_said(script):
    answer = run_program([script("echo begun; sleep 60")], 0.5, PATH)
    assert (answer.exit_code, answer.stdout) == (None, "begun\n")


def test_closed_streams_do_not_hide_a_hanging_program(script):
    assert run_program([script("exec >&- 2>&-; sleep 60")], 0.5, PATH).exit_code is None


def test_children_left_behind_are_killed(script, tmp_path):
    started = time.monotonic()
    answer = run_program([script(f'sleep 60 & echo $! > "{tmp_path}/child"; exit 0')], 0.5, PATH)
    assert answer.exit_code is None, "its child kept the streams open"
    assert time.monotonic() - started < 5
    assert _ends(int((tmp_path / "child").read_text())), "the child still runs"


RUN_PROGRAM = "from gpus_app.core.probes.program import run_program; run_program([{0!r}], 60, {{}})"
RUNNING = """from models_app.trial.process import Log, running
with running([{0!r}], {{}}, Log()):
    __import__("time").sleep(60)"""


@pytest.mark.parametrize("code", [RUN_PROGRAM, RUNNING], ids=["probe", "test launch"])
def test_nothing_outlives_a_worker_that_is_killed(script, tmp_path, code):
    """SIGKILL leaves no time to tidy up; the program ignores every other signal."""
    started = tmp_path / "started"
    program = script(
        f'trap "" TERM INT HUP; sleep 60 & echo $$ $! > "{started}.new"; mv "{started}.new" "{started}"; wait'
    )
    worker = subprocess.Popen([sys.executable, "-c", code.format(program)], cwd=Path(__file__).parents[2])
    try:
        assert _within(20, started.exists)
        group = [int(pid) for pid in started.read_text().split()]
        assert all(_runs(pid) for pid in group)
        time.sleep(0.2)  # for the worker, which hears of the start later than we do
    finally:
        worker.kill()
        worker.wait()
    assert [pid for pid in group if not _ends(pid)] == []


def _ends(pid: int) -> bool:
    return _within(5, lambda: not _runs(pid))


def _within(seconds: float, holds) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _runs(pid: int) -> bool:
    try:
        state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]  # noqa: SIM115
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("word", ["", "no\0thing", "/dev/null"])
def test_what_cannot_be_started(word):
    with pytest.raises(OSError):
        run_program([word], 5, PATH)


def test_somebody_asks_for_its_end(script, tmp_path):
    mark = tmp_path / "begun"
    started = time.monotonic()
    answer = run_program([script(f"echo begun; touch {mark}; sleep 60")], 30, PATH, mark.exists)
    assert (answer.exit_code, answer.stdout) == (None, "begun\n")
    assert time.monotonic() - started < 10
