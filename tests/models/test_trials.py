"""Test launches: what comes up is asked and stopped, what does not is stopped in time and leaves nothing."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace

import psutil
import pytest

from gpus_app.core.readings import DeviceReading
from models_app.services import preview_plan, trials
from models_app.trial import launch as trial
from models_app.trial import memory, process
from models_app.trial.launch import TrialFailed, try_launch
from quartermaster_site.errors import Refused
from quartermaster_site.jobs.host_tasks import Cancelled
from quartermaster_site.jobs.models import Job
from tests.zoo import zoo

SERVER = """
import http.server, signal, sys, time
DELAY, STATUS, STUBBORN = {delay}, {status}, {stubborn}
if STUBBORN:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("loading", " ".join(sys.argv[1:]), flush=True)
print("x" * 1_000_000 * {megabytes}, flush=True)
time.sleep(DELAY)
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status=200):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b'{{"choices": [1]}}')
    def do_GET(self):
        self.answer()
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(STATUS)
port = int(sys.argv[sys.argv.index("--port") + 1])
open({pid!r}, "w").write(str(__import__("os").getpid()))
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class Report:
    """A reporter that is cancelled after so many looks."""

    def __init__(self, looks=10**9):
        self.looks = looks
        self.logged = []

    def log(self, line):
        self.logged.append(line)

    def is_cancelled(self):
        self.looks -= 1
        return self.looks < 0

    def progress(self, *args, **more):
        pass


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(process, "STOP_SECONDS", 0.5)
    monkeypatch.setattr(trial, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(memory, "EVERY_SECONDS", 0.2)


@pytest.fixture
def server(tmp_path):
    """`server(delay=1)` is the path of a program that answers on `--port` after a second."""

    def write(body="", **more):
        pid = str(tmp_path / "pid")
        values = {"delay": 0, "status": 200, "stubborn": False, "megabytes": 0, "pid": pid, **more}
        program = tmp_path / "server"
        program.write_text(f"#!{sys.executable}\n{body or SERVER.format(**values)}")
        program.chmod(0o755)
        return str(program)

    return write


def launch(program, report=None, permitted=("/",), **more):
    inputs = {
        "words": [program, "--port", trial.PORT, "a b; $HOME"],
        "health": "/health",
        "question": {"name": "chat", "model": "m", "seconds": 15},
        "seconds": 15,
        **more,
    }
    return try_launch(report or Report(), inputs, environment={"PATH": os.environ["PATH"]}, permitted=permitted)


def ended(tmp_path):
    pid = int((tmp_path / "pid").read_text())
    return not os.path.exists(f"/proc/{pid}") or " Z " in open(f"/proc/{pid}/stat").read()  # noqa: SIM115


def test_what_comes_up_is_asked_and_stopped(server, tmp_path):
    found = launch(server(delay=0.5))
    assert found["ready_seconds"] >= 0.5
    assert found["peak_bytes"] > 1 << 20
    assert found["lines"][0].endswith("a b; $HOME"), "no shell"
    assert ended(tmp_path)


def test_one_that_ignores_the_signal_is_killed(server, tmp_path):
    launch(server(stubborn=True))
    assert ended(tmp_path)


def test_one_that_ends_says_why(server):
    with pytest.raises(TrialFailed, match="ended by itself with exit code 3. It said: error: no such model"):
        launch(server("print('error: no such model'); raise SystemExit(3)"))


def test_one_that_crashes_says_how(server):
    report = Report()
    with pytest.raises(TrialFailed, match="with exit code 139. It printed nothing"):
        launch(server("raise SystemExit(139)"), report)
    with pytest.raises(TrialFailed, match="with signal 11. It said: loading"):
        launch(server("import os; print('loading', flush=True); os.kill(os.getpid(), 11)"), report)
    assert report.logged == ["loading"]


def test_one_that_crashes_over_the_question_is_not_waited_for(server, tmp_path):
    crash = SERVER.format(delay=0, status=200, stubborn=False, megabytes=0, pid=str(tmp_path / "pid"))
    crash = crash.replace("self.answer(STATUS)", "__import__('os').kill(__import__('os').getpid(), 11)")
    started = time.monotonic()
    with pytest.raises(TrialFailed, match="ended by itself with signal 11"):
        launch(server(crash))
    assert time.monotonic() - started < 10


def test_one_that_hangs_over_the_question_is_stopped_in_time(server, tmp_path):
    hang = SERVER.format(delay=0, status=200, stubborn=True, megabytes=0, pid=str(tmp_path / "pid"))
    hang = hang.replace("self.answer(STATUS)", "time.sleep(60)")
    with pytest.raises(TrialFailed, match=r"the question \(chat\) failed: it took too long"):
        launch(server(hang), question={"name": "chat", "model": "m", "seconds": 1})
    assert ended(tmp_path)


def test_a_child_in_a_session_of_its_own_is_killed_too(server, tmp_path):
    child = "import subprocess; away = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
    child += f"open({str(tmp_path / 'child')!r}, 'w').write(str(away.pid))\n"
    body = SERVER.format(delay=1, status=200, stubborn=False, megabytes=0, pid=str(tmp_path / "pid"))
    launch(server(child + body))
    left = int((tmp_path / "child").read_text())
    for _ in range(30):
        if not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.1)
    pytest.fail("the child still runs")


def test_the_memory_of_children_counts(server, tmp_path):
    grab = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
    grab += "'import time; held = bytearray(96 << 20); time.sleep(30)'])\n"
    body = SERVER.format(delay=1.5, status=200, stubborn=False, megabytes=0, pid=str(tmp_path / "pid"))
    assert launch(server(grab + body))["peak_bytes"] > 96 << 20


def test_what_is_added_on_a_device_counts(server, monkeypatch):
    used = iter([5 << 30, 6 << 30, 9 << 30])

    def readings():
        nonlocal last
        last = next(used, last)
        return (DeviceReading(0, "card", 24 << 30, last),)

    last = 7 << 30
    monkeypatch.setattr(memory, "device_readings", readings)
    found = launch(server(delay=1.5))
    assert found["devices"] == [{"index": 0, "name": "card", "bytes": 4 << 30}]


def test_nothing_is_left_of_its_temporary_files(server, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    body = SERVER.format(delay=0, status=200, stubborn=False, megabytes=0, pid=str(tmp_path / "pid"))
    launch(server("open(__import__('os').environ['TMPDIR'] + '/x', 'w')\n" + body))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pid", "server"]


def test_one_that_never_answers_is_stopped_in_time(server):
    started = time.monotonic()
    with pytest.raises(TrialFailed, match="did not answer within 1 s"):
        launch(server(delay=60), seconds=1)
    assert time.monotonic() - started < 10


def test_one_that_refuses_the_question(server, tmp_path):
    with pytest.raises(TrialFailed, match=r"it came up, but the question \(chat\) failed: status 500"):
        launch(server(status=500))
    assert ended(tmp_path)


def test_a_flood_of_output_stops_nothing_and_is_cut(server):
    found = launch(server(megabytes=100))
    assert sum(map(len, found["lines"])) < 100_000
    assert found["lines"][0].startswith("loading")


def test_many_lines_are_kept_at_both_ends(server):
    body = SERVER.format(delay=0, status=200, stubborn=False, megabytes=0, pid="/dev/null")
    found = launch(server("for n in range(5000): print('line', n, flush=True)\n" + body))
    assert found["lines"][0] == "line 0"
    assert any("lines left out" in line for line in found["lines"])
    assert len(found["lines"]) <= trials.MAX_LINES


def test_a_cancelled_one_is_stopped(server):
    started = time.monotonic()
    with pytest.raises(Cancelled):
        launch(server(delay=60), report=Report(looks=2))
    assert time.monotonic() - started < 10


def test_one_that_is_cancelled_over_the_question_is_stopped(server, tmp_path):
    hang = SERVER.format(delay=0, status=200, stubborn=False, megabytes=0, pid=str(tmp_path / "pid"))
    hang = hang.replace("self.answer(STATUS)", "time.sleep(60)")
    started = time.monotonic()
    with pytest.raises(Cancelled):
        launch(server(hang), report=Report(looks=25))
    assert time.monotonic() - started < 10
    assert ended(tmp_path)


def test_only_permitted_programs_are_started(server, tmp_path):
    with pytest.raises(TrialFailed, match="QM_BACKEND_ROOTS"):
        launch(server(), permitted=[str(tmp_path / "elsewhere")])
    with pytest.raises(TrialFailed, match="not there"):
        launch(str(tmp_path / "missing"))


@pytest.fixture
def planned(host, tmp_path, actor, django_capture_on_commit_callbacks):
    """A small chat model and an embedder of tests/zoo, scanned and planned on the CPU."""
    from models_app import services
    from models_app.models import Root, Row

    for name in ("qwen3-0.6b-q8_0", "nomic-embed-text-v1.5-f16"):
        zoo.write_model(name, str(tmp_path / "models"))
    Root.objects.create(host=host, path=str(tmp_path / "models"))
    with django_capture_on_commit_callbacks(execute=True):
        services.start_scan(host=host, actor=actor)
    return lambda name: Row.objects.get(served_id__startswith=name)


def test_a_job_with_a_server_that_answers(planned, host, actor, server, django_capture_on_commit_callbacks):
    from gpus_app.models import Backend

    Backend.objects.create(host=host, slug="a", kind="llama", path=server())
    with django_capture_on_commit_callbacks(execute=True):
        trials.start_trial(row=planned("qwen3"), actor=actor)
    job = Job.objects.get(kind="test_launch")
    assert (job.state, job.error) == ("succeeded", "")
    assert job.result["lines"]
    assert job == trials.last_trial(planned("qwen3"))


def test_one_at_a_time_and_only_what_can_be_asked(planned, host, actor, monkeypatch):
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)
    first = trials.start_trial(row=planned("qwen3"), actor=actor)
    assert not trials.start_trial(row=planned("qwen3"), actor=actor).created
    with pytest.raises(Refused, match="is being tried on this host"):
        trials.start_trial(row=planned("nomic"), actor=actor)
    assert first.job.inputs["words"].count("--port") == 1
    assert trials.refusal(replace(preview_plan(row=planned("qwen3")).base, model_class="unheard-of"))


def test_the_page_shows_the_outcome(planned, host, actor, client, monkeypatch):
    client.force_login(actor.user)
    row = planned("qwen3")
    address = f"/models/{row.pk}/test/"
    assert "Test launch" in client.get(address).content.decode()
    devices = [{"index": 0, "name": "card", "bytes": 3 << 30}]
    result = {"ready_seconds": 1.5, "answer_seconds": 0.2, "answer": "a token", "peak_bytes": 1 << 30}
    result |= {"devices": devices, "lines": ["<b>hello</b>"]}
    common = {"host": host, "kind": "test_launch", "object_type": "row", "object_id": str(row.pk), "token": "t"}
    Job.objects.create(**common, state="succeeded", result=result)
    html = client.get(address).content.decode()
    assert "&lt;b&gt;hello" in html
    assert "1.00 GiB" in html
    assert "3.00 GiB" in html
    assert "a token" in html
    Job.objects.create(**common, state="failed", error="it ended by itself")
    assert "it ended by itself" in client.get(address).content.decode()


@pytest.mark.llama
@pytest.mark.xdist_group("llama")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3", "nomic"])
def test_a_real_llama_server(planned, host, actor, name, django_capture_on_commit_callbacks):
    from gpus_app.models import Backend

    Backend.objects.create(
        host=host, slug="a", kind="llama", path=os.path.join(os.environ["QM_LLAMA_BIN"], "llama-server")
    )
    from models_app.models import Override

    Override.objects.create(host=host, match=planned(name).path, fields={"ctx": 1024}, version=1)
    with django_capture_on_commit_callbacks(execute=True):
        trials.start_trial(row=planned(name), actor=actor)
    job = Job.objects.get(kind="test_launch")
    assert (job.state, job.error) == ("succeeded", "")
    assert job.result["peak_bytes"] > 100 << 20
    assert 0 < job.result["ready_seconds"] < 120
