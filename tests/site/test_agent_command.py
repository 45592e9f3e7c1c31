"""The agent's command: what it keeps, what it says, what its worker may know, and what doctor finds."""

from __future__ import annotations

import errno
import json
import stat
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gpus_app.core.errors import UsageError
from quartermaster_site import env, workers
from quartermaster_site.agent import client, command, doctor, identity
from quartermaster_site.version import PROTOCOL
from tests.tasks.workers import ROOT

GIVEN = {"slug": "gpu-a", "enrolment": "e1", "broker_url": "redis://qm-host-gpu-a:pw@broker:6379/0", "broker_ca": "PEM"}


class Server:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self):
        outer = self
        self.asked, self.answers = [], []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                outer.asked.append((self.path, json.loads(self.rfile.read(length))))
                status, answer, *more = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in more:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def server():
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))
    identity.current.cache_clear()
    yield tmp_path / "data"
    identity.current.cache_clear()
    command._stopping.clear()


@pytest.fixture
def me(server):
    private, _ = identity.new_key()
    found = identity.Identity(server=server.url, private_key=private, **GIVEN)
    identity.store(found)
    return found


def test_a_code_becomes_an_identity_for_its_owner_alone(server, data_dir, capsys):
    server.answers = [(200, GIVEN | {"own_account": True})]
    assert command.main(["--server", server.url + "/", "--code", "qme-x", "--enrol-only"]) == 0
    kept = data_dir / "agent" / "identity.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    path, asked = server.asked[0]
    assert (path, asked["code"], asked["protocol"]) == ("/api/v1/agents/enrol/", "qme-x", PROTOCOL)
    found = identity.load()
    assert identity.is_signed(asked["public_key"], found.sign(b"text"), b"text")
    assert found.private_key not in json.dumps(asked)
    said = capsys.readouterr().err
    assert "enrolled as host gpu-a" in said
    assert "pw" not in said


def test_a_full_disk_at_the_enrolment_is_one_sentence(server, data_dir, capsys, monkeypatch):
    def full(path, text):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    server.answers = [(200, GIVEN)]
    monkeypatch.setattr(identity, "_write", full)
    assert command.main(["--server", server.url, "--code", "qme-x"]) == 2
    said = capsys.readouterr().err
    assert f"{data_dir / 'agent'} cannot be written: No space left on device" in said
    assert "The code is used up" in said


def test_a_full_disk_later_is_one_sentence_too(server, me, capsys, monkeypatch):
    """The service may start it again: exit code 1."""

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device", "/data/logs/host.log")

    server.answers = [(200, {"state": "ok", "server_time": time.time()})]
    monkeypatch.setattr(workers, "worker", full)
    assert command.main([]) == 1
    assert "/data/logs/host.log cannot be used: No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "answer", "code", "words"),
    [
        (403, {"error": {"message": "This code was used at noon."}}, 3, "This code was used at noon."),
        (403, {"error": {"message": "This code was good until noon."}}, 3, "This code was good until noon."),
        (422, {"error": {"message": "This agent is older."}}, 3, "This agent is older."),
        (429, {"error": {"message": "Too many."}}, 1, "answered 429: Too many."),
        (403, b"<h1>Forbidden</h1>", 1, "Does its list of networks admit this machine?"),
        (400, b"<h1>Bad</h1>", 1, "among the server's QM_ALLOWED_HOSTS?"),
        (200, b"<html>", 1, "does not answer"),
        (200, [1], 1, "is it a Quartermaster?"),
        (200, {"slug": "../x"}, 1, "lacks something"),
    ],
)
def test_what_an_answer_means(server, capsys, status, answer, code, words):
    server.answers = [(status, answer)]
    assert command.main(["--server", server.url, "--code", "qme-x", "--enrol-only"]) == code
    assert words in capsys.readouterr().err
    assert identity.load() is None


def test_no_redirect_is_followed(server, capsys):
    server.answers = [(302, b"", ("Location", "https://elsewhere/"))]
    assert command.main(["--server", server.url, "--code", "qme-x", "--enrol-only"]) == 1
    assert "It leads to https://elsewhere/" in capsys.readouterr().err
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "not enrolled"),
        (["--code", "x"], "belong together"),
        (["--server", "http://s"], "belong together"),
        (["--server", "ftp://s", "--code", "x"], "write the address of the pages"),
        (["--server", "s", "--code", "x"], "write the address of the pages"),
        (["--server", "https://127.0.0.1:1", "--code", "x", "--ca", "/no/such.pem"], "--ca /no/such.pem"),
    ],
)
def test_wrong_usage(arguments, words, capsys):
    assert command.main(arguments) == 2
    assert words in capsys.readouterr().err


def test_a_damaged_identity_is_said(me, data_dir, capsys):
    (data_dir / "agent" / "identity.json").write_text("{")
    assert command.main([]) == 2
    assert "enrol this machine again" in capsys.readouterr().err


def test_plain_http_over_a_network_is_said(monkeypatch, capsys):
    monkeypatch.setattr(client, "enrol", lambda *args: GIVEN)
    command.main(["--server", "http://quartermaster.example", "--code", "x", "--enrol-only"])
    assert "not reached over HTTPS" in capsys.readouterr().err


class Asked:
    """An agent with a worker that is none."""

    def __init__(self, me, monkeypatch):
        self.started, self.stopped = [], []
        monkeypatch.setattr(command.Agent, "_new_worker", lambda agent: self.started.append(1) or Idle())
        monkeypatch.setattr(command.processes, "stop_all", self.stopped.extend)
        monkeypatch.setattr(command, "CHECK_SECONDS", 0.0)
        monkeypatch.setattr(command, "_TAKE_OVER_SECONDS", 0.0)
        self.agent = command.Agent(me)


class Idle:
    is_running = True
    log = "host.log"


def stop_after(monkeypatch, rounds):
    """The agent is stopped when it has asked so often."""
    count = iter(range(rounds - 1))
    watch = command.Agent._watch

    def counted(agent):
        watch(agent)
        if next(count, None) is None:
            command._stopping.set()

    monkeypatch.setattr(command.Agent, "_watch", counted)


def test_a_second_agent_is_told_off_before_it_works(server, me, monkeypatch):
    server.answers = [(200, {"state": "second", "message": "runs already, on box"})]
    found = Asked(me, monkeypatch)
    with pytest.raises(command.NotWanted, match="runs already, on box"):
        found.agent.run()
    assert found.started == []


def test_and_later_too(server, me, monkeypatch):
    ok = (200, {"state": "ok"})
    server.answers = [ok, ok, (200, {"state": "second", "message": "runs already"})]
    found = Asked(me, monkeypatch)
    with pytest.raises(command.NotWanted):
        found.agent.run()
    assert found.started == [1]


def test_one_that_was_cut_off_stops(server, me, monkeypatch, capsys):
    ok = (200, {"state": "ok"})
    server.answers = [ok, ok, (410, {"error": {"message": "This machine's enrolment is not valid any more."}})]
    found = Asked(me, monkeypatch)
    monkeypatch.setattr(command, "Agent", lambda me: found.agent)
    assert command.main([]) == 3
    assert len(found.stopped) == 1
    assert "not valid any more" in capsys.readouterr().err


def test_a_list_of_networks_stops_nothing(server, me, monkeypatch, capsys):
    ok = (200, {"state": "ok"})
    server.answers = [ok, ok, (403, {"error": {"message": "Not from this address."}})]
    found = Asked(me, monkeypatch)
    stop_after(monkeypatch, 3)
    found.agent.run()
    assert (found.started, found.stopped) == ([1], [])
    assert "Not from this address. The worker goes on" in capsys.readouterr().err


def test_another_version_waits_and_goes_on_when_it_fits(server, me, monkeypatch, capsys):
    ok, wrong = (200, {"state": "ok"}), (200, {"state": "mismatch", "message": "This agent is older: update it."})
    server.answers = [ok, ok, wrong, wrong, ok]
    found = Asked(me, monkeypatch)
    stop_after(monkeypatch, 4)
    found.agent.run()
    assert (len(found.started), len(found.stopped)) == (2, 1)
    assert capsys.readouterr().err.count("update it") == 1


def test_a_server_that_is_away_stops_nothing(me, monkeypatch, capsys):
    found = Asked(identity.Identity(**{**vars_of(me), "server": "http://127.0.0.1:1"}), monkeypatch)
    stop_after(monkeypatch, 3)
    found.agent.run()
    assert (found.started, found.stopped) == ([1], [])
    assert capsys.readouterr().err.count("does not answer") == 1


def test_clock_and_pause_are_told(server, me, monkeypatch, capsys):
    server.answers = [(200, {"state": "ok", "server_time": time.time() + 100, "paused": True})]
    found = Asked(me, monkeypatch)
    stop_after(monkeypatch, 2)
    found.agent.run()
    said = capsys.readouterr().err
    assert said.count("s from ours: set both by NTP; the host is paused") == 1


def test_a_slow_answer_is_no_wrong_clock(me, monkeypatch, capsys):
    found = Asked(me, monkeypatch)
    now = time.time()
    found.agent._tell({"server_time": now - 10}, asked=now - 20)
    assert "NTP" not in capsys.readouterr().err
    found.agent._tell({"server_time": now - 30}, asked=now - 20)
    assert "-10 s from ours" in capsys.readouterr().err


def test_a_stop_by_request_is_told_to_the_server(server, me, monkeypatch):
    server.answers = [(200, {"state": "ok"})]
    found = Asked(me, monkeypatch)
    found.agent.leave()
    assert json.loads(server.asked[-1][1]["body"])["leaving"] is True


def vars_of(me):
    return {name: getattr(me, name) for name in identity.Identity.__dataclass_fields__}


NO_DATABASE = """
import os
print(sorted(name for name in os.environ if name.startswith(("QM_", "DJANGO_"))))
os.environ["DJANGO_SETTINGS_MODULE"] = "quartermaster_site.settings"
import django
django.setup()
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from gpus_app.models import Host
try:
    Host.objects.exists()
except ImproperlyConfigured:
    print(connections.settings["default"]["ENGINE"])
from quartermaster_site.celery import app
print([queue.name for queue in app.conf.task_queues], app.conf.broker_url)
print("secret-key" in os.listdir(os.environ["QM_DATA_DIR"]))
"""


def test_the_worker_has_no_database_and_one_queue(me, data_dir, monkeypatch):
    """The environment that it really gets, whatever ours says."""
    for name in ("QM_DATABASE_URL", "QM_SEALING_KEY", "QM_SECRET_KEY", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.setenv(name, "postgres://u:p@db/qm")
    given = {}
    monkeypatch.setattr(workers.processes, "start", lambda name, argv, **more: given.update(more, argv=argv))
    command.Agent(me)._new_worker()
    assert given["argv"][given["argv"].index("-Q") + 1] == "host.gpu-a"
    done = subprocess.run(
        [sys.executable, "-c", NO_DATABASE], env=given["environment"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names, engine, queues, made_a_key = done.stdout.splitlines()
    assert not [name for name in ("DATABASE", "SEALING", "SECRET", "DJANGO_SETTINGS") if name in names]
    assert engine == "django.db.backends.dummy"
    assert queues == "['host.gpu-a'] redis://qm-host-gpu-a:pw@broker:6379/0"
    assert made_a_key == "False"


class TestDoctor:
    def test_elsewhere_it_says_nothing_of_agents(self):
        assert not doctor.is_agent()

    @pytest.mark.parametrize(
        ("answer", "state", "words"),
        [
            ({"state": "ok", "version": "0.1.0"}, "ok", "knows this machine as host gpu-a"),
            ({"state": "ok", "version": "9.0"}, "note", "version 9.0"),
            ({"state": "mismatch", "message": "update it"}, "problem", "update it"),
        ],
    )
    def test_the_server(self, server, me, monkeypatch, answer, state, words):
        monkeypatch.setattr(doctor, "product_version", lambda: "0.1.0")
        server.answers = [(200, {"server_time": time.time(), **answer})]
        found = doctor.server()
        assert (found.state, words in found.text) == (state, True)
        assert json.loads(server.asked[0][1]["body"])["instance"] == ""

    def test_a_clock_that_is_off(self, server, me, monkeypatch):
        monkeypatch.setattr(doctor, "product_version", lambda: "1")
        server.answers = [(200, {"state": "ok", "version": "1", "server_time": time.time() - 60})]
        assert "its clock is -60 s from ours" in doctor.server().text

    def test_a_broker_that_is_away(self, me):
        identity.store(identity.Identity(**{**vars_of(me), "broker_url": "redis://127.0.0.1:1/0", "broker_ca": ""}))
        found = doctor.broker()
        assert (found.state, "cannot be used" in found.text) == ("problem", True)

    def test_a_database_is_not_for_agents(self, monkeypatch):
        monkeypatch.delenv("QM_DATABASE_URL", raising=False)
        assert doctor.no_database().state == "ok"
        monkeypatch.setenv("QM_DATABASE_URL", "postgres://x")
        assert doctor.no_database().state == "note"


def test_only_addresses_of_pages_are_taken():
    with pytest.raises(UsageError):
        client.checked_server("https://s/?x=1")
    assert client.checked_server("https://s/quarter/") == "https://s/quarter"


def test_sequences_grow_even_in_another_process(monkeypatch, me):
    from quartermaster_site.agent import envelope

    monkeypatch.setenv("QM_AGENT_INSTANCE", "one")
    first = envelope.sealed("t", {})["envelope"]["sequence"]
    monkeypatch.setattr(envelope, "_last", 0)
    assert envelope.sealed("t", {})["envelope"]["sequence"] > first
    assert env.agent_instance() == "one"
