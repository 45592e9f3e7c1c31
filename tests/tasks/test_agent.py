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
from quartermaster_site.jobs.services import start_job
from tests.tasks import inbox
from tests.tasks.brokers import Broker
from tests.tasks.test_up import free_port
from tests.tasks.workers import ROOT
from tests.tiny_models import tiny_gguf

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
START = """
import sys
from quartermaster_site.agent import command
command.CHECK_SECONDS, command._TAKE_OVER_SECONDS = 1.0, 3.0
raise SystemExit(command.main(sys.argv[1:]))
"""
MANY = 700
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

    def wait(self, until, seconds=40):
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
            env={**clean, "QM_DATA_DIR": str(self.tmp_path / folder), "PYTHONPATH": str(ROOT)},
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


def many_models(folder):
    folder.mkdir()
    tiny_gguf(folder / "a-Q4_0.gguf", name="A")
    for number in range(MANY - 1):
        (folder / f"b-{number:04d}-Q4_0.gguf").hardlink_to(folder / "a-Q4_0.gguf")
    return folder


def half_way(job):
    row = Job.objects.get(pk=job.pk)
    assert not row.is_finished, "too fast for this test"
    return row.phase == "Reading headers" and row.done > 20


def test_unplugged_during_a_scan_and_plugged_in_again(installation, enrolled, actor, tmp_path):
    register_root(host=the_host(), path=str(many_models(tmp_path / "models")), actor=actor)
    job = start_scan(host=the_host(), actor=actor).job
    installation.wait(lambda: half_way(job))
    unplug(enrolled)
    assert Job.objects.get(pk=job.pk).state == State.RUNNING

    installation.agent()
    installation.wait(lambda: Job.objects.get(pk=job.pk).state == State.LOST)
    lost = Job.objects.get(pk=job.pk)
    assert lost.error == "The machine's agent was started anew while this ran."
    assert lost.advice == "It was started again by itself."
    again = lost.retries.get()
    installation.wait(lambda: Job.objects.get(pk=again.pk).is_finished)
    again.refresh_from_db()
    assert (again.state, again.result["models"]) == (State.SUCCEEDED, MANY)
    assert Row.objects.filter(state=Row.State.PRESENT).count() == MANY
    assert the_host().state == "online"
    assert agents.second_agent(the_host()) is None


def test_a_broker_that_hangs_and_one_that_forgets_everything(installation, enrolled, broker, actor, tmp_path):
    """Nothing is lost or done twice; the account is made again, and the same process goes on."""
    register_root(host=the_host(), path=str(many_models(tmp_path / "models")), actor=actor)
    job = start_scan(host=the_host(), actor=actor).job
    installation.wait(lambda: half_way(job))
    broker.process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    broker.process.send_signal(signal.SIGCONT)
    installation.wait(lambda: Job.objects.get(pk=job.pk).is_finished)
    job.refresh_from_db()
    assert (job.state, job.result["models"], job.retries.count()) == (State.SUCCEEDED, MANY, 0)

    broker.stop()
    broker.start()
    assert enrolment.renew_accounts() == ["gpu-a"]
    before = timezone.now()
    installation.wait(lambda: the_host().last_seen_at > before)
    probe = start_job(kind="probe_devices", host=the_host(), actor=actor).job
    installation.wait(lambda: Job.objects.get(pk=probe.pk).is_finished)
    assert enrolled.poll() is None


def test_a_copy_of_it_is_told_off_and_the_page_says_so(installation, enrolled, tmp_path):
    shutil.copytree(tmp_path / "agent" / "agent", tmp_path / "copy" / "agent")
    copy = installation.agent(folder="copy")
    installation.wait(lambda: copy.poll() is not None)
    assert copy.returncode == 3
    assert "An agent with the credentials of gpu-a runs already" in installation.said("copy")
    assert "A second agent with this machine's credentials" in machine_of(the_host()).notes[0]
    assert enrolled.poll() is None


def test_enrolled_anew_the_old_one_is_cut_off(installation, enrolled, actor):
    code = enrolment.new_code(host=the_host(), actor=actor)
    installation.wait(lambda: enrolled.poll() is not None)
    assert enrolled.returncode == 3
    assert "not valid any more" in installation.said()
    installation.agent("--server", installation.url, "--code", code)
    installation.wait(lambda: the_host().state == "online")


def test_scans_plans_and_writes_into_its_own_folder_and_leaves_by_request(installation, enrolled, actor, tmp_path):
    for name in ("models", "router"):
        (tmp_path / name).mkdir()
    tiny_gguf(tmp_path / "models" / "alpha-1b-Q4_0.gguf", name="Alpha")
    register_root(host=the_host(), path=str(tmp_path / "models"), actor=actor)
    save_target(host=the_host(), path=str(tmp_path / "router" / "config.yaml"), dialect="llama-swap", actor=actor)
    start_scan(host=the_host(), actor=actor)
    installation.wait(lambda: (newest := latest_candidate(the_host())) and "alpha-1b" in newest.text)
    write = start_write(revision=latest_candidate(the_host()), actor=actor).job
    installation.wait(lambda: Job.objects.get(pk=write.pk).is_finished)
    write.refresh_from_db()
    assert write.state == State.SUCCEEDED, write.error
    assert "alpha-1b" in (tmp_path / "router" / "config.yaml").read_text()

    enrolled.send_signal(signal.SIGTERM)
    installation.wait(lambda: enrolled.poll() is not None)
    assert enrolled.returncode == 0
    assert Agent.objects.get().instance == ""
