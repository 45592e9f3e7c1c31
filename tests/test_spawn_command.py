"""`quartermaster-spawn` as a router runs it: it becomes the program, says one line, and never stands in the way."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from gpus_app.core.probes import machine
from gpus_app.core.readings import DeviceReading
from models_app import spawn
from models_app.core import readers
from models_app.core.readers import cache as cache_module
from models_app.core.readers import read_header
from models_app.core.readers.cache import HeaderCache
from models_app.core.units import GIB
from tests.core.test_gguf_hostile import slowness
from tests.zoo import zoo

ROOT = Path(__file__).resolve().parent.parent
MODEL = "qwen25-0.5b-f16"
STARTED = """
import sys
sys.path.insert(0, {root!r})
from gpus_app.core.probes import machine
from gpus_app.core.readings import DeviceReading
card = DeviceReading(0, "NVIDIA A", 24 << 30, (24 << 30) - int({free} * (1 << 30)), vendor="nvidia")
machine.read_devices = lambda: ((card,), ())
from models_app.spawn import main
raise SystemExit(main())
"""


def card(free_gib):
    return DeviceReading(0, "NVIDIA A", 24 * GIB, 24 * GIB - int(free_gib * GIB), vendor="nvidia")


@pytest.fixture
def model(zoo_folder):
    return str(next(zoo_folder.glob(f"{MODEL}*.gguf")))


@pytest.fixture
def started(monkeypatch):
    """What was started instead of this process."""
    calls = []
    monkeypatch.setattr("os.execvp", lambda program, argv: calls.append((program, argv)))
    return calls


@pytest.fixture(autouse=True)
def _signals():
    """A command sets them for the program that it becomes."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def run(monkeypatch, started, capfd):
    """Run it with so much free: (exit code, what it started, the line)."""

    def go(words, free_gib=None, **patched):
        readings = () if free_gib is None else (card(free_gib),)
        monkeypatch.setattr(machine, "read_devices", patched.get("read", lambda: (readings, ())))
        code = spawn.main(words)
        line = capfd.readouterr().err
        assert line.count("\n") == 1
        assert line.startswith("quartermaster-spawn: ")
        return code, started[-1][1] if started else None, line

    return go


def guarded(model, *options, text="-ngl 99 -c 32768", program="/opt/llama-server"):
    return [*options, "--", program, "-m", model, *text.split()]


def cached(model, file):
    """A cache that knows the model."""
    cache = HeaderCache(file)
    read_header(model, cache=cache)
    cache.close()


# --- what it starts --------------------------------------------------------------------------------------------


def test_a_launch_that_fits_starts_as_it_is(run, model):
    _, argv, line = run(guarded(model), 20)
    assert argv == guarded(model)[1:]
    assert "unchanged: needs" in line
    assert "20.00 GiB is free" in line


def test_one_that_does_not_is_changed(run, model):
    _, argv, line = run(guarded(model, "--reserve-gb", "0"), 1.6)
    assert argv[-1] != "32768"
    assert f"-c 32768 -> {argv[-1]}: as planned it needs" in line


def test_a_refusal_starts_nothing(run, model):
    code, argv, line = run(guarded(model), 0.4)
    assert (code, argv) == (75, None)
    assert "refused: " in line
    assert "0.40 GiB is free" in line


def test_the_cache_spares_the_parsers(run, model, tmp_path, monkeypatch):
    file = tmp_path / "headers.sqlite3"
    cached(model, file)
    monkeypatch.setattr(readers, "read_header", lambda path: pytest.fail("the file was parsed"), raising=False)
    _, _, line = run(guarded(model, "--header-cache", str(file)), 20)
    assert "unchanged: needs" in line


def test_no_cache_is_made_where_none_is(run, model, tmp_path):
    missing = tmp_path / "not" / "there.sqlite3"
    _, _, line = run(guarded(model, "--header-cache", str(missing)), 20)
    assert "unchanged: needs" in line
    assert not missing.parent.exists()


# --- what cannot stop it ---------------------------------------------------------------------------------------


def _fails():
    raise RuntimeError("driver\nlost")


@pytest.mark.parametrize(
    ("words", "read", "reason"),
    [
        (["--new-option", "1", "--", "llama-server"], None, "the option --new-option is not known"),
        (
            ["--", "llama-server", "-m", "m.gguf", "-ngl", "9", "-c", "1"],
            None,
            "the header of its model cannot be read",
        ),
        (["--", "llama-server", "-m", "m.gguf", "-ngl", "9", "-c", "1"], _fails, "RuntimeError: driver?lost"),
        (["--", "vllm", "serve", "m"], None, "this program is not known"),
    ],
)
def test_whatever_goes_wrong_the_program_starts(run, words, read, reason):
    _, argv, line = run(words, 20, **({"read": read} if read else {}))
    assert argv == words[words.index("--") + 1 :]
    assert f"unchanged: {reason}" in line


def test_a_driver_that_hangs_costs_two_seconds(run, model, monkeypatch):
    assert spawn.LONGEST_SECONDS == 2
    monkeypatch.setattr(spawn, "LONGEST_SECONDS", 0.05)
    _, argv, line = run(guarded(model), read=lambda: time.sleep(1))
    assert argv == guarded(model)[1:]
    assert "no decision within 0.05 s" in line


@pytest.mark.parametrize("data", [b"", b"GGUF", b"GGUF" + b"\xff" * 4096, os.urandom(4096)])
def test_a_hostile_header_starts_as_it_is(run, tmp_path, data):
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    _, argv, line = run(guarded(str(path)), 1)
    assert argv == guarded(str(path))[1:]
    assert "header of its model cannot be read" in line


def test_a_broken_cache_is_done_without(run, model, tmp_path):
    file = tmp_path / "headers.sqlite3"
    file.write_bytes(b"no database" * 100)
    _, _, line = run(guarded(model, "--header-cache", str(file)), 20)
    assert "unchanged: needs" in line


def test_facts_of_another_version_are_read_again(run, model, tmp_path, monkeypatch):
    file = tmp_path / "headers.sqlite3"
    with monkeypatch.context() as older:
        older.setattr(cache_module, "PARSER_VERSION", 1)
        cached(model, file)
    assert "unchanged: needs" in run(guarded(model, "--header-cache", str(file)), 20)[2]


def test_a_long_reason_is_one_short_line(run):
    _, _, line = run(["--" + "x" * 5000, "1", "--", "llama-server"])
    assert len(line) < 600


@pytest.mark.parametrize("words", [[], ["llama-server", "-m", "x"], ["--target-gb", "7", "--"]])
def test_without_a_command_it_says_how_to_use_it(run, words):
    code, argv, line = run(words)
    assert (code, argv) == (2, None)
    assert "usage: quartermaster-spawn [options] -- COMMAND" in line


def test_a_program_that_is_not_there_ends_like_in_a_shell(tmp_path, capfd):
    file = tmp_path / "plain"
    file.write_text("no program")
    assert spawn.main(["--", str(tmp_path / "none")]) == 127
    assert spawn.main(["--", str(file)]) == 126
    assert spawn.main(["--", "a\0b"]) == 126
    assert capfd.readouterr().err.count("cannot be started") == 3


# --- it becomes the program ------------------------------------------------------------------------------------


def popen(words, free=20, **more):
    script = STARTED.format(root=str(ROOT), free=free)
    return subprocess.Popen([sys.executable, "-I", "-c", script, *words], **more)


@pytest.mark.slow
def test_process_words_signals_and_exit_code_are_those_of_the_program(tmp_path):
    """One start shows all of it. The words are bytes: not all that a file can be called is text."""
    program = tmp_path / "a program"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, sys, time\n"
        "ignored = next(line for line in open('/proc/self/status') if line.startswith('SigIgn'))\n"
        "print(os.getpid(), [os.fsencode(word) for word in sys.argv[1:]], ignored.split()[1], flush=True)\n"
        "sys.stdin.readline()\n"
        "sys.exit(41)\n"
    )
    program.chmod(0o755)
    words = ["", "a b", "ü ✓", "\"'$x`", b"\xff\xfe", "--", "x" * 100_000]
    process = popen(["--", str(program), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    number, _, rest = process.stdout.readline().decode().partition(" ")
    assert int(number) == process.pid
    listed, _, _ignored = rest.strip().rpartition(" ")
    assert eval(listed) == [os.fsencode(word) for word in words]
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
    assert b"unchanged: this program is not known" in process.stderr.read()
    again = popen(["--", str(program)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out, _ = again.communicate(timeout=20)
    assert again.returncode == 41
    # Python itself ignores SIGPIPE (13) and SIGXFSZ (25), and so does the program above: nothing beyond these and what
    # the tests were started with (a job in the background ignores SIGQUIT). From 32 on they are the C library's own.
    own = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigIgn"))
    allowed = int(own.split()[1], 16) | 1 << 12 | 1 << 24
    assert int(out.split()[-1], 16) & 0x7FFFFFFF & ~allowed == 0


@pytest.mark.slow
def test_a_broken_pipe_kills_the_program_as_it_should(tmp_path):
    """A shell, unlike Python, starts with what it was given."""
    process = popen(
        ["--", "sh", "-c", "grep SigIgn /proc/self/status"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    out, _ = process.communicate(timeout=20)
    assert int(out.split()[-1], 16) & (1 << 12 | 1 << 24) == 0


@pytest.mark.slow
def test_it_takes_less_than_150_ms_of_processor_time(model, tmp_path):
    file = tmp_path / "headers.sqlite3"
    cached(model, file)
    program = tmp_path / "llama-server"
    program.symlink_to("/bin/true")
    words = guarded(model, "--reserve-gb", "0", "--header-cache", str(file), program=str(program))
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = popen(words, 1.6, stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=20)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert process.returncode == 0
        assert b"-c 32768 -> " in said
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 0.15 * slowness()


@pytest.mark.llama
@pytest.mark.slow
@pytest.mark.xdist_group("llama")
def test_a_real_llama_server_runs_with_the_window_that_fits(tmp_path):
    zoo.write_model(MODEL, str(tmp_path))
    model = str(next(tmp_path.glob("*.gguf")))
    server = os.path.join(os.environ["QM_LLAMA_BIN"], "llama-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = f"-ngl 99 -c 32768 -ub 64 -fa on --port {port} --host 127.0.0.1 --no-warmup"
    words = guarded(model, "--reserve-gb", "0", text=text, program=server)
    with open(tmp_path / "log", "w+b") as log:
        process = popen(words, 1.6, stdout=log, stderr=log)
        try:
            window = _window(f"http://127.0.0.1:{port}/props")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        log.seek(0)
        line = log.readline().decode()
    assert "-c 32768 -> " in line
    assert window == int(line.split("-c 32768 -> ")[1].split(":")[0])
    assert 0.6 * 32768 <= window < 32768


def _window(url):
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return json.load(answer)["default_generation_settings"]["n_ctx"]
        except OSError:
            time.sleep(0.5)
    pytest.fail("llama-server did not answer")
