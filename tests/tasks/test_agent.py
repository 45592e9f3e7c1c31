"""A real agent process on another data folder, a real Valkey between, this process as its server: web and control."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from wsgiref.simple_server import WSGIRequestHandler, make_server

import psutil
import pytest
from celery import Celery
from django.core.wsgi import get_wsgi_application
from django.utils import timezone

from gpus_app import agents, enrolment
from gpus_app.models import Agent, Host
from gpus_app.services import save_target
from models_app.models import Row
from models_app.pages.machine_page import machine_of
from models_app.selectors.fleet import latest_candidate
from models_app.services import register_root, start_scan
from models_app.services.writing import start_write
from quartermaster_site import broker_accounts, redis_broker
from quartermaster_site.celery import app
from quartermaster_site.jobs.models import Job, State
from tests.tasks import inbox
from tests.tasks.brokers import Broker
from tests.tasks.slow_reading import slow_mark
from tests.tasks.test_up import free_port
from tests.tasks.workers import ROOT
from tests.tiny_models import tiny_gguf

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
START = """
import functools
import sys
from quartermaster_site.agent import command
from quartermaster_site import workers
command.CHECK_SECONDS, command._TAKE_OVER_SECONDS = 1.0, 3.0
workers.worker = functools.partial(workers.worker, more=["--include", "tests.tasks.slow_reading"])
raise SystemExit(command.main(sys.argv[1:]))
"""
MANY = 1200
PLAN = "models_app.tasks.plan_host"


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Installation:
    """The server's side: it answers HTTP and takes messages only while a test waits for something."""

    def __init__(self, broker, tmp_path):
        self.broker, self.tmp_path, self.agents = broker, tmp_path, []
        self.app = Celery("server", set_as_current=False)
        self.app.conf.update(
            broker_url=broker.url, broker_transport_options=redis_broker.options("control"), task_ignore_result=True
        )
        self.http = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
        self.http.timeout = 0
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def wait(self, until, seconds=90):
        def pumped():
            self.http.handle_request()
            return until()

        inbox.drain(self.app, pumped, seconds)

    def agent(self, *arguments, folder="agent"):
        """Start one; its data folder is kept between starts."""
        log = (self.tmp_path / f"{folder}.log").open("ab")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("QM_", "DJANGO_", "PYTEST"))}
        process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            env={
                **clean,
                "QM_DATA_DIR": str(self.tmp_path / folder),
                "PYTHONPATH": str(ROOT),
                "QM_WORKER_NICE": "0",
            },
            cwd=self.tmp_path,
            stderr=log,
        )
        self.agents.append(process)
        return process

    def said(self, folder="agent"):
        return (self.tmp_path / f"{folder}.log").read_text()

    def stop(self):
        for process in self.agents:
            unplug(process)
        self.http.server_close()
        self.app.close()


def unplug(process):
    """Everything of it at once, as with a power cut."""
    if process.poll() is None:
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in children:
            child.kill()
        psutil.wait_procs(children, timeout=5)
    process.wait()


@pytest.fixture(scope="module")
def broker():
    found = Broker("valkey", free_port())
    yield found
    found.stop()


@pytest.fixture
def installation(broker, tmp_path, monkeypatch, settings):
    monkeypatch.setenv("QM_REDIS_URL", broker.url)
    settings.ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
    monkeypatch.setattr(agents, "SILENT_AFTER", agents.timedelta(seconds=6))
    broker_accounts._why_shared.cache_clear()
    app.conf.task_always_eager = False
    app.loader.import_default_modules()
    with broker.client() as client:
        client.flushall()
    found = Installation(broker, tmp_path)
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.app", found.app)
    monkeypatch.setitem(inbox.HANDLED, PLAN, lambda arguments: app.tasks[PLAN](**arguments))
    yield found
    found.stop()


@pytest.fixture
def enrolled(installation, actor):
    """A host whose agent runs; the process, and the host again and again."""
    _, code = enrolment.create_host(slug="gpu-a", name="GPU A", actor=actor)
    assert machine_of(the_host()).worker.note == "for its agent"
    process = installation.agent("--server", installation.url, "--code", code)
    installation.wait(lambda: the_host().state == "online" and the_host().probed_at)
    return process


def the_host():
    return Host.objects.select_related("agent").get(slug="gpu-a")


def many_models(folder, name):
    """Read slowly until `at_full_speed`."""
    folder.mkdir()
    slow_mark(folder).touch()
    first = folder / f"{name}-a-Q4_0.gguf"
    tiny_gguf(first, name=name)
    for number in range(MANY - 1):
        (folder / f"{name}-b-{number:04d}-Q4_0.gguf").hardlink_to(first)
    return str(folder)


def at_full_speed(folder):
    slow_mark(folder).unlink()


def in_the_midst(job, known=0):
    """Whether it reads files that are new; `known` ones come first and take no time."""
    row = Job.objects.get(pk=job.pk)
    assert not row.is_finished, "too fast for this test"
    return row.phase == "Reading headers" and row.done > known + 20


def finished(job):
    return lambda: Job.objects.get(pk=job.pk).is_finished


def test_a_broker_that_hangs_or_forgets_and_a_machine_that_is_unplugged(
    installation, enrolled, broker, actor, tmp_path
):
    """Nothing is lost or done twice, and what the pages have at hand is true at each step."""
    register_root(host=the_host(), path=many_models(tmp_path / "one", "one"), actor=actor)
    job = start_scan(host=the_host(), actor=actor).job
    installation.wait(lambda: in_the_midst(job))
    broker.process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    broker.process.send_signal(signal.SIGCONT)
    at_full_speed(tmp_path / "one")
    installation.wait(finished(job))
    job.refresh_from_db()
    assert (job.state, job.result["models"], job.retries.count()) == (State.SUCCEEDED, MANY, 0)

    broker.stop()
    broker.start()
    assert enrolment.renew_accounts() == ["gpu-a"]
    before = timezone.now()
    installation.wait(lambda: the_host().last_seen_at > before)

    register_root(host=the_host(), path=many_models(tmp_path / "two", "two"), actor=actor)
    job = start_scan(host=the_host(), actor=actor).job
    installation.wait(lambda: in_the_midst(job, known=MANY))
    assert enrolled.poll() is None
    unplug(enrolled)
    at_full_speed(tmp_path / "two")
    assert Job.objects.get(pk=job.pk).state == State.RUNNING
    installation.agent()
    installation.wait(lambda: Job.objects.get(pk=job.pk).state == State.LOST)
    lost = Job.objects.get(pk=job.pk)
    assert lost.error == "The machine's agent was started anew while this ran."
    assert lost.advice == "It was started again by itself."
    again = lost.retries.get()
    installation.wait(finished(again))
    again.refresh_from_db()
    assert (again.state, again.result["models"]) == (State.SUCCEEDED, 2 * MANY)
    assert Row.objects.filter(state=Row.State.PRESENT).count() == 2 * MANY
    assert the_host().state == "online"
    assert agents.second_agent(the_host()) is None


def test_scans_plans_writes_is_copied_cut_off_and_stopped(installation, enrolled, actor, tmp_path):
    for name in ("models", "router"):
        (tmp_path / name).mkdir()
    tiny_gguf(tmp_path / "models" / "alpha-1b-Q4_0.gguf", name="Alpha")
    register_root(host=the_host(), path=str(tmp_path / "models"), actor=actor)
    save_target(host=the_host(), path=str(tmp_path / "router" / "config.yaml"), dialect="llama-swap", actor=actor)
    start_scan(host=the_host(), actor=actor)
    installation.wait(lambda: (newest := latest_candidate(the_host())) and "alpha-1b" in newest.text)
    write = start_write(revision=latest_candidate(the_host()), actor=actor).job
    installation.wait(finished(write))
    write.refresh_from_db()
    assert write.state == State.SUCCEEDED, write.error
    assert "alpha-1b" in (tmp_path / "router" / "config.yaml").read_text()

    shutil.copytree(tmp_path / "agent" / "agent", tmp_path / "copy" / "agent")
    copy = installation.agent(folder="copy")
    installation.wait(lambda: copy.poll() is not None)
    assert copy.returncode == 3
    assert "An agent with the credentials of gpu-a runs already" in installation.said("copy")
    assert "A second agent with this machine's credentials" in machine_of(the_host()).notes[0]
    assert enrolled.poll() is None

    code = enrolment.new_code(host=the_host(), actor=actor)
    installation.wait(lambda: enrolled.poll() is not None)
    assert enrolled.returncode == 3
    assert "not valid any more" in installation.said()
    again = installation.agent("--server", installation.url, "--code", code)
    installation.wait(lambda: the_host().state == "online")

    again.send_signal(signal.SIGTERM)
    installation.wait(lambda: again.poll() is not None)
    assert again.returncode == 0
    assert Agent.objects.get().instance == ""
