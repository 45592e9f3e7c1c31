"""The command line as other programs meet it: closed and full streams, interruption, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from models_app.core import cli
from tests.tiny_models import tiny_gguf

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def command(tmp_path):
    """`command(redirection, *words)` -> the finished process, run by a shell so that streams can really be closed."""
    tiny_gguf(tmp_path / "tiny.gguf", "Tiny")

    def run(redirection, *words, **environ):
        script = f'exec "$@" {redirection}'
        arguments = [sys.executable, "-P", "-m", "models_app.core.cli", *words]
        environment = {**os.environ, "QM_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": ROOT, **environ}
        return subprocess.run(
            ["sh", "-c", script, "sh", *arguments],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    return run


VERBS = [
    ["inspect", "tiny.gguf", "--json"],
    ["project", "tiny.gguf", "--ctx", "1024"],
    ["plan", "tiny.gguf", "--vram", "4", "--ram", "4"],
    ["generate", "--models", ".", "--vram", "4", "--ram", "4", "-o", "-"],
    ["check", "tiny.gguf", "--dialect", "llama-swap"],
]


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_a_full_device_is_a_sentence(command, words):
    done = command(">/dev/full", *words)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("the answer cannot be written: No space left on device")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", [">&-", "</dev/null >&-", "<&- >/dev/null", ">/dev/null 2>&-"])
def test_closed_streams_swallow_what_is_written(command, redirection):
    for words in VERBS[:2]:
        done = command(redirection, *words)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_gone(command):
    done = command("| true", *VERBS[0][:2], *["tiny.gguf"] * 2000)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_terminal_without_our_letters(command, tmp_path):
    (tmp_path / "tiny.gguf").rename(tmp_path / "模型.gguf")
    for words in (
        ["plan", "模型.gguf", "--vram", "4", "--ram", "4"],
        ["project", "模型.gguf", "--ctx", "64"],
        ["plan", "-h"],
    ):
        done = command(">/dev/null", *words, PYTHONIOENCODING="ascii")
        assert (done.returncode, done.stderr) == (0, "")


def test_a_home_that_cannot_be_found(command):
    done = command("", "inspect", "tiny.gguf", QM_DATA_DIR="~nobody-of-this-name/x")
    assert done.returncode == 2
    assert "set QM_DATA_DIR" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interruption_leaves_without_a_word(monkeypatch, tmp_path, capsys):
    from models_app.core.verbs import inspect

    def interrupted(options, environment):
        raise KeyboardInterrupt

    monkeypatch.setattr(inspect, "run", interrupted)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    assert cli.main(["inspect", str(tmp_path)]) == 130
    assert capsys.readouterr() == ("", "")
